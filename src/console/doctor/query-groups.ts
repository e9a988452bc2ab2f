/**
 * The queries of a capture of any length, in a table of fixed size: queries that no rule distinguishes form one
 * group. When the table is full, light groups are sampled: some are dropped, and the rest represent them (threshold
 * sampling, Duffield, Lund and Thorup 2007). So sums stay correct on average, and heavy groups stay exact.
 */
import type { QueryRow } from "../api-types.ts";
import { hashText } from "./name-set.ts";
import { type WorkloadName, workloadName, workloadText } from "./workload-names.ts";

/** Plugins that query other servers. */
export const ASKING_PLUGINS: ReadonlySet<string> = new Set(["forward", "grpc", "proxy"]);

/** Seconds: a TTL that defeats the cache. */
export const SHORT_TTL = 10;

/** The client. */
export interface Asker {
  /** The workload, else the address. */
  readonly who: string;
  /** Namespace of the client, else its address. */
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
  /** TTL of a cacheable answer from another server, if it is at most {@link SHORT_TTL}; else undefined. */
  readonly ttl: number | undefined;
  /** Queries, including those represented by sampled ones. */
  weight: number;
  /** The queries that were seen. */
  rows: number;
  /** Milliseconds, summed over the queries that were seen. */
  duration: number;
}

const CAPACITY = 16_384;
/** Pods whose workload is cached. */
const MOST_ASKERS = 4_096;

export class QueryGroups {
  readonly #capacity: number;
  readonly #groups = new Map<string, QueryGroup>();
  readonly #askers = new Map<string, Asker>();
  /** The least weight of a group that represents others; 0 without any. */
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

  /** Drops half of the groups. */
  #thin(): void {
    const threshold = thresholdFor(
      Array.from(this.#groups.values(), ({ weight }) => weight),
      this.#capacity / 2,
    );
    this.grain = Math.max(this.grain, threshold);
    const light = [...this.#groups]
      .filter(([, { weight }]) => weight < threshold)
      // Queries come in patterns (A and AAAA, one search domain after another): each n-th would always be of the same
      // kind.
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

/** The weight below which groups are sampled so that some `wanted` of them remain. */
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
