/**
 * The queries of a capture, however long, in a table of fixed size: those that no rule tells apart are one group. When the table is full,
 * the light groups are thinned out: some go, and those that stay stand for them (threshold sampling, Duffield, Lund and Thorup 2007). So
 * the sum of any kind of queries stays what it was but for chance, and heavy groups stay exact.
 */
import type { QueryRow } from "../api-types.ts";
import { hashText } from "./name-set.ts";
import { type WorkloadName, workloadName, workloadText } from "./workload-names.ts";

/** Plugins that ask others. */
export const ASKING_PLUGINS: ReadonlySet<string> = new Set(["forward", "grpc", "proxy"]);

/** Seconds: a TTL that defeats the cache. */
export const SHORT_TTL = 10;

/** Who asks. */
export interface Asker {
  /** As people call it: the workload, else the address. */
  readonly who: string;
  /** Of the client, else its address. */
  readonly namespace: string;
  readonly workload: WorkloadName | undefined;
}

export interface QueryGroup extends Asker {
  /** In lower case. */
  readonly name: string;
  readonly type: string;
  readonly rcode: string;
  readonly plugin: string;
  readonly hasAnswer: boolean;
  /** Of an answer that somebody else gave and that may be kept for {@link SHORT_TTL} at most; of others it is not known. */
  readonly ttl: number | undefined;
  /** Queries, with those that others stand for. */
  weight: number;
  /** Those of them that were seen. */
  rows: number;
  /** Milliseconds, of all that were seen. */
  duration: number;
}

const CAPACITY = 16_384;
/** Pods whose workload is remembered. */
const MOST_ASKERS = 4_096;

export class QueryGroups {
  readonly #capacity: number;
  readonly #groups = new Map<string, QueryGroup>();
  readonly #askers = new Map<string, Asker>();
  /** What a group that stands for others weighs at least; 0 as long as none does. */
  grain = 0;

  constructor(capacity: number = CAPACITY) {
    this.#capacity = capacity;
  }

  /** @param name in lower case */
  add(row: QueryRow, name: string): void {
    const { type, rcode, plugin, weight, duration } = row;
    const asker = this.#asker(row);
    const hasAnswer = row.answers > 0;
    const isShort = row.ttl !== undefined && row.ttl <= SHORT_TTL && ASKING_PLUGINS.has(plugin);
    const ttl = isShort ? row.ttl : undefined;
    const key = `${name} ${type} ${rcode} ${plugin} ${hasAnswer} ${ttl ?? ""} ${asker.who}`;
    const known = this.#groups.get(key);
    if (known !== undefined) {
      known.weight += weight;
      known.rows++;
      known.duration += duration;
      return;
    }
    if (this.#groups.size >= this.#capacity) this.#thin();
    this.#groups.set(key, { ...asker, name, type, rcode, plugin, hasAnswer, ttl, weight, rows: 1, duration });
  }

  [Symbol.iterator](): MapIterator<QueryGroup> {
    return this.#groups.values();
  }

  get size(): number {
    return this.#groups.size;
  }

  #asker({ workload: pod, client }: QueryRow): Asker {
    if (pod === undefined) return { who: client, namespace: client, workload: undefined };
    const known = this.#askers.get(pod);
    if (known !== undefined) return known;
    const workload = workloadName(pod);
    const asker = { who: workloadText(workload), namespace: workload.namespace, workload };
    if (this.#askers.size >= MOST_ASKERS) this.#askers.clear();
    this.#askers.set(pod, asker);
    return asker;
  }

  /** Leaves half of the groups. */
  #thin(): void {
    const threshold = thresholdFor(
      Array.from(this.#groups.values(), ({ weight }) => weight),
      this.#capacity / 2,
    );
    this.grain = Math.max(this.grain, threshold);
    const light = [...this.#groups]
      .filter(([, { weight }]) => weight < threshold)
      // Queries come in patterns (A and AAAA, one search domain after another): each n-th of them would always be the same one.
      .map(([key, group]) => ({ key, group, order: hashText(key) }))
      .sort((one, other) => one.order - other.order);
    let passed = threshold / 2;
    for (const { key, group } of light) {
      passed += group.weight;
      if (passed < threshold) {
        this.#groups.delete(key);
        continue;
      }
      passed -= threshold;
      const factor = threshold / group.weight;
      group.weight = threshold;
      group.rows *= factor;
      group.duration *= factor;
    }
  }
}

/** The weight below which groups are thinned out so that some `wanted` of them are left. */
function thresholdFor(weights: number[], wanted: number): number {
  weights.sort((one, other) => other - one);
  let rest = weights.reduce((sum, weight) => sum + weight, 0);
  for (const [kept, weight] of weights.entries()) {
    const threshold = rest / (wanted - kept);
    if (weight <= threshold || kept + 1 >= wanted) return threshold;
    rest -= weight;
  }
  return 0;
}
