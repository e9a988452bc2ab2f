/** The samples of the longest turns of a measured server's event loop, from its probe. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

interface Profile {
  /** Microseconds, as all times here. */
  readonly startTime: number;
  readonly nodes: readonly {
    readonly id: number;
    readonly children?: readonly number[];
    readonly callFrame: {
      readonly functionName: string;
      readonly url: string;
      readonly lineNumber: number;
    };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** Milliseconds. */
interface Turn {
  readonly processor: number;
  readonly from: number;
  readonly to: number;
}

interface Collection {
  /** `GCType` of V8. */
  readonly type: number;
  readonly from: number;
  readonly wall: number;
  readonly processor: number;
}

interface Explained {
  readonly turns: readonly Turn[];
  readonly collections: readonly Collection[];
  readonly profile: Profile;
}

/** Milliseconds until the server has written down what it knows. */
const PATIENCE = 10_000;
/** Functions in fewer samples of a turn are left out. */
const LEAST_SHARE = 0.08;

/** Makes a server write down its longest turns since the last call. @returns them as text, the longest first */
export async function takeLongTurns(file: string): Promise<string> {
  writeFileSync(`${file}.take`, "");
  for (const deadline = performance.now() + PATIENCE; existsSync(`${file}.take`); await delay(50))
    if (performance.now() > deadline) throw new Error("the server does not write down its turns");
  return describeTurns(JSON.parse(readFileSync(file, "utf8")));
}

export function describeTurns({ turns, collections, profile }: Explained): string {
  const tree = new CallTree(profile);
  return turns
    .map((turn) => {
      const { from, to, processor } = turn;
      const within = collections.filter((each) => each.from >= from && each.from <= to);
      return [
        `${processor.toFixed(1)} ms on the processor, ${(to - from).toFixed(1)} by the clock`,
        ...within.map((each) => `  ${describeCollection(each)}`),
        ...tree.lines(from * 1000, to * 1000),
      ].join("\n");
    })
    .join("\n\n");
}

const COLLECTIONS = new Map([
  [1, "scavenge"],
  [2, "minor mark-sweep"],
  [4, "mark-compact"],
  [8, "start of marking"],
  [16, "weak callbacks"],
]);

function describeCollection({ type, wall, processor }: Collection): string {
  return `${COLLECTIONS.get(type) ?? type}: ${processor.toFixed(1)} ms on the processor, ${wall.toFixed(1)} by the clock`;
}

class CallTree {
  readonly #profile: Profile;
  readonly #nodes = new Map<number, Profile["nodes"][number]>();
  readonly #parents = new Map<number, number>();

  constructor(profile: Profile) {
    this.#profile = profile;
    for (const node of profile.nodes) {
      this.#nodes.set(node.id, node);
      for (const child of node.children ?? []) this.#parents.set(child, node.id);
    }
  }

  /** The functions between two times: each below its caller, with the number of its samples. */
  lines(from: number, to: number): string[] {
    const { startTime, samples, timeDeltas } = this.#profile;
    const counts = new Map<number, number>();
    let time = startTime;
    let all = 0;
    samples.forEach((sample, index) => {
      time += timeDeltas[index] ?? 0;
      if (time < from || time > to) return;
      all++;
      for (let id: number | undefined = sample; id !== undefined; id = this.#parents.get(id))
        counts.set(id, (counts.get(id) ?? 0) + 1);
    });
    const lines: string[] = [];
    const write = (id: number, depth: number): void => {
      const node = this.#nodes.get(id);
      const count = counts.get(id) ?? 0;
      if (node === undefined || count < Math.max(2, LEAST_SHARE * all)) return;
      const { functionName, url, lineNumber } = node.callFrame;
      const place = url === "" ? "" : ` ${url.replace(/^.*\//, "")}:${lineNumber + 1}`;
      if (depth > 0)
        lines.push(`${"  ".repeat(depth)}${count}/${all} ${functionName || "(anonymous)"}${place}`);
      for (const child of node.children ?? []) write(child, depth + 1);
    };
    const root = this.#profile.nodes[0];
    if (root !== undefined) write(root.id, 0);
    return lines;
  }
}
