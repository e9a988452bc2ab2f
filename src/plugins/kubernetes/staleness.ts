/** Checks whether the state of the cluster is too old for the server to be ready (the option `max_staleness`). */
import type { Kind } from "../../kubernetes/objects/objects.ts";
import type { ClusterStore } from "../../kubernetes/store/store.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";
import type { Logger } from "../../plugin/index.ts";

export interface StalenessOptions {
  /** The cluster, and its imports from other clusters. */
  readonly stores: readonly ClusterStore[];
  /** Milliseconds; undefined for no limit. */
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

  /**
   * Whether a part of the state is too old. Logs the beginning and the end of such a time, as far as `ready` polls
   * it.
   */
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

  /** Status lines for `ready`: one line if a part of the state is too old, otherwise empty. */
  describe(): string[] {
    const { maxMs } = this.#options;
    if (maxMs === undefined) return [];
    const oldest = this.#tooOld(maxMs);
    return oldest === undefined ? [] : [`stale: ${words(oldest, maxMs)}`];
  }

  /**
   * The kind with the longest time since its last message, if that is too long. A kind that was never listed has no
   * age.
   */
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
  return `the state of ${kind} is ${age} old, and max_staleness is ${formatGoDuration(maxMs)}`;
}
