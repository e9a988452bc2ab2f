/** A query that what is kept could not answer, on its way to the rest of the chain. */
import { Flag } from "../../dns/numbers.ts";
import { writeU16 } from "../../dns/octets.ts";
import { type Next, Query } from "../../plugin/index.ts";
import type { CacheCounters } from "./counters.ts";
import type { EntryKey } from "./kept-answer.ts";
import { TRAIT_DO } from "./question-hash.ts";

/** What has to be known of it when the answer is there. */
export interface AwaitedQuery extends EntryKey {
  readonly asked: Query;
  readonly wantsAuthenticData: boolean;
  readonly counters: CacheCounters;
}

export class PendingQuery implements AwaitedQuery {
  /** What the rest of the chain is asked: octets of its own, and AD set so that a validating upstream says what it knows. */
  readonly asked: Query;
  readonly next: Next;
  readonly hash: number;
  readonly traits: number;
  /** Whether the client wants to see AD (RFC 6840 section 5.7). */
  readonly wantsAuthenticData: boolean;
  readonly counters: CacheCounters;

  private constructor(query: Query, asked: Query, next: Next, key: EntryKey, counters: CacheCounters) {
    this.asked = asked;
    this.next = next;
    this.hash = key.hash;
    this.traits = key.traits;
    this.wantsAuthenticData = wantsAuthenticData(query, key.traits);
    this.counters = counters;
  }

  /** Asks on behalf of a client. */
  static forClient(query: Query, next: Next, key: EntryKey, counters: CacheCounters): PendingQuery {
    return new PendingQuery(query, query.derive({ flags: askedFlags(query) }), next, key, counters);
  }

  /**
   * Asks the same question when the client is gone: over a stream, so that nothing is cut to its size, and with nothing that could
   * change under it. `undefined` is not to be expected: the octets were read before.
   */
  static inBackground(
    query: Query,
    next: Next,
    key: EntryKey,
    counters: CacheCounters,
    now: number,
  ): PendingQuery | undefined {
    const bytes = new Uint8Array(query.packet);
    writeU16(bytes, 2, askedFlags(query));
    const asked = Query.read(bytes, bytes.length, {
      listener: query.listener,
      transport: "tcp",
      client: query.client.snapshot(),
      local: query.local.snapshot(),
      receivedAt: now,
    });
    if (asked === undefined) return undefined;
    asked.view = query.view;
    // What plugins say of this query must not show on the client's, which may be in the log by then.
    if (query.metadata !== undefined) asked.metadata = new Map();
    return new PendingQuery(query, asked, next, key, counters);
  }
}

/** AD, and of what the client sent only what the answer is kept by: another bit could change it for others, too. */
function askedFlags({ flags }: Query): number {
  return (flags & (OPCODE | Flag.RD | Flag.CD)) | Flag.AD;
}

const OPCODE = 0x7800;

/** @param traits see `answerTraits` */
export function wantsAuthenticData(query: Query, traits: number): boolean {
  return (query.flags & Flag.AD) !== 0 || (traits & TRAIT_DO) !== 0;
}
