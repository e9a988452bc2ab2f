/** How old what is known of the cluster may become before the server is no longer fit to answer (the option `max_staleness`). */
import type { Kind } from "../../kubernetes/objects/objects.ts";
import type { ClusterStore } from "../../kubernetes/store/store.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";
import type { Logger } from "../../plugin/index.ts";

export interface StalenessOptions {
  /** The cluster, and what is imported from others. */
  readonly stores: readonly ClusterStore[];
  /** Milliseconds; undefined for however long. */
  readonly maxMs: number | undefined;
  readonly log: Logger;
}

interface OldestKind {
  readonly kind: Kind;
  readonly ageMs: number;
}

export class Staleness {
  readonly #options: StalenessOptions;
  #wasStale = false;

  constructor(options: StalenessOptions) {
    this.#options = options;
  }

  /** Whether something is too old. The log says when that begins and when it is over, as far as somebody asks. */
  isStale(): boolean {
    const { maxMs, log } = this.#options;
    if (maxMs === undefined) return false;
    const oldest = this.#tooOld(maxMs);
    if ((oldest !== undefined) === this.#wasStale) return this.#wasStale;
    this.#wasStale = oldest !== undefined;
    if (oldest !== undefined) log.warning(`not ready: ${words(oldest, maxMs)}`);
    else log.info("ready again: the state of the cluster is no older than max_staleness");
    return this.#wasStale;
  }

  /** For people: one line where something is too old, else none. */
  describe(): string[] {
    const { maxMs } = this.#options;
    if (maxMs === undefined) return [];
    const oldest = this.#tooOld(maxMs);
    return oldest === undefined ? [] : [`stale: ${words(oldest, maxMs)}`];
  }

  /** The kind that was not heard of for the longest time, if that is too long. What has not been listed yet is no older than nothing. */
  #tooOld(maxMs: number): OldestKind | undefined {
    let oldest: OldestKind | undefined;
    for (const store of this.#options.stores) {
      for (const kind of store.kinds) {
        const ageMs = store.isKindSynced(kind) ? store.age(kind) : undefined;
        if (ageMs !== undefined && ageMs > (oldest?.ageMs ?? maxMs)) oldest = { kind, ageMs };
      }
    }
    return oldest;
  }
}

function words({ kind, ageMs }: OldestKind, maxMs: number): string {
  const age = formatGoDuration(Math.floor(ageMs / 1000) * 1000);
  return `what is known of ${kind} is ${age} old, and max_staleness is ${formatGoDuration(maxMs)}`;
}
