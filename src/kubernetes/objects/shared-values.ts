import { equalPorts } from "./equality.ts";
import type { Port } from "./objects.ts";

/**
 * Values that many objects repeat, kept once. A cluster has a few topology zones, port names and label sets, and each
 * object that arrives brings its own copies of them.
 */
export class SharedValues {
  readonly #texts = new Map<string, string>();
  readonly #labelSets = new Map<string, ReadonlyMap<string, string>>();
  readonly #portLists = new Map<string, readonly Port[]>();
  /** Lists that came last, by the number of their first port: to compare one takes less than to make its key. */
  readonly #recentPorts = new Array<readonly Port[]>(RECENT).fill(NO_PORTS);

  text(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    makeRoom(this.#texts);
    this.#texts.set(text, text);
    return text;
  }

  labelSet(entries: readonly (readonly [key: string, value: string])[]): ReadonlyMap<string, string> {
    if (entries.length === 0) return NO_LABELS;
    const key = JSON.stringify(entries);
    const known = this.#labelSets.get(key);
    if (known !== undefined) return known;
    makeRoom(this.#labelSets);
    const labels = new Map(entries.map(([name, value]) => [this.text(name), this.text(value)]));
    this.#labelSets.set(key, labels);
    return labels;
  }

  portList(ports: readonly Port[]): readonly Port[] {
    const [first] = ports;
    if (first === undefined) return NO_PORTS;
    const place = first.number & (RECENT - 1);
    const recent = this.#recentPorts[place];
    if (recent !== undefined && equalPorts(recent, ports)) return recent;
    const kept = this.#keptPorts(ports);
    this.#recentPorts[place] = kept;
    return kept;
  }

  #keptPorts(ports: readonly Port[]): readonly Port[] {
    let key = "";
    for (const { name, number, protocol } of ports) key += `${name}:${number}/${protocol},`;
    const known = this.#portLists.get(key);
    if (known !== undefined) return known;
    makeRoom(this.#portLists);
    // A copy has no room for more.
    const kept = [...ports];
    this.#portLists.set(key, kept);
    return kept;
  }
}

const NO_PORTS: readonly Port[] = [];

/** A power of two. */
const RECENT = 64;

export const NO_LABELS: ReadonlyMap<string, string> = new Map();

/** Names come and go for as long as the process lives; starting afresh costs some copies, growing would cost all. */
const MAX_SHARED = 16_384;

function makeRoom(values: Map<string, unknown>): void {
  if (values.size >= MAX_SHARED) values.clear();
}
