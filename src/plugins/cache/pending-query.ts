/** A cache miss on its way to the rest of the chain. */
import { Flag } from "../../dns/numbers.ts";
import { writeU16 } from "../../dns/octets.ts";
import { type Next, Query } from "../../plugin/index.ts";
import type { CacheCounters } from "./counters.ts";
import type { EntryKey } from "./kept-answer.ts";
import { TRAIT_DO } from "./question-hash.ts";

/** The parts of the query that are needed when the answer arrives. */
export interface AwaitedQuery extends EntryKey {
  readonly asked: Query;
  readonly wantsAuthenticData: boolean;
  readonly counters: CacheCounters;
}

export class PendingQuery implements AwaitedQuery {
  /**
   * The query for the rest of the chain: a copy with AD set, so that a validating upstream reports whether it
   * validated.
   */
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
   * Repeats the question without a client: over a stream, so that the reply is not truncated, and from a copy, so
   * that the bytes cannot change. `undefined` is not expected: the bytes were parsed before.
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
    // Metadata that plugins add here must not appear on the client's query, which may be in the log already.
    if (query.metadata !== undefined) asked.metadata = new Map();
    return new PendingQuery(query, asked, next, key, counters);
  }
}

/**
 * AD, and only those of the client's flags that are part of the cache key: another bit could change the answer for
 * others.
 */
function askedFlags({ flags }: Query): number {
  return (flags & (OPCODE | Flag.RD | Flag.CD)) | Flag.AD;
}

const OPCODE = 0x7800;

/** @param traits see `answerTraits` */
export function wantsAuthenticData(query: Query, traits: number): boolean {
  return (query.flags & Flag.AD) !== 0 || (traits & TRAIT_DO) !== 0;
}
