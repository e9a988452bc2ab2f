/** Questions that the rest of the chain is being asked, so that equal ones need not be asked as well. */
import type { Name } from "../../dns/name.ts";
import { RecordType } from "../../dns/type-names.ts";
import { LateOutcome } from "../../plugin/chain/late-outcome.ts";
import type { Outcome, Query, Reply } from "../../plugin/index.ts";
import type { CacheCounters } from "./counters.ts";
import type { MentionedNames } from "./mentioned-names.ts";
import { OutdatedNames } from "./outdated-names.ts";
import type { AwaitedQuery } from "./pending-query.ts";
import { namesClientSubnet } from "./query-options.ts";
import type { Verdict } from "./verdict.ts";

/** How a question was answered. */
export interface Landing {
  /** For the query that was asked. */
  readonly outcome: Outcome;
  /** Present for a reply. */
  readonly verdict: Verdict | undefined;
  /** The reply for other queries: nobody changes it. Present when somebody waits. */
  readonly template: Reply | undefined;
}

/** A question on its way, and the outcome for the client who was first to ask it. */
export class Flight extends LateOutcome implements AwaitedQuery {
  readonly asked: Query;
  readonly hash: number;
  readonly counters: CacheCounters;
  readonly #arrival: FlightEnd;
  /** Traits and {@link WANTS_AUTHENTIC_DATA}. Thousands of flights may wait. */
  readonly #marks: number;
  /** {@link OutdatedNames.time}. */
  readonly askedAt: number;
  /** Queries that wait for the answer to this one. */
  waiting = 0;
  /** The next one that can be joined whose hash falls into the same place. The table's own. */
  neighbour: Flight | undefined;
  #landed: PromiseWithResolvers<Landing> | undefined;

  /** @param query the client's */
  constructor(query: Query, pending: AwaitedQuery, arrival: FlightEnd, askedAt: number) {
    super(query);
    this.askedAt = askedAt;
    this.asked = pending.asked;
    this.counters = pending.counters;
    this.hash = pending.hash;
    this.#arrival = arrival;
    this.#marks = pending.traits | (pending.wantsAuthenticData ? WANTS_AUTHENTIC_DATA : 0);
  }

  get traits(): number {
    return this.#marks & (WANTS_AUTHENTIC_DATA - 1);
  }

  get wantsAuthenticData(): boolean {
    return (this.#marks & WANTS_AUTHENTIC_DATA) !== 0;
  }

  /** Never rejects. To be asked for before it has landed: most flights nobody waits for, and they need no promise. */
  get landed(): Promise<Landing> {
    this.#landed ??= Promise.withResolvers<Landing>();
    return this.#landed.promise;
  }

  land(landing: Landing): void {
    this.#landed?.resolve(landing);
  }

  /** What the rest of the chain said, of which the client gets what is its own. */
  override settle(outcome: Outcome): void {
    super.settle(this.#arrival.arrived(outcome, this));
  }
}

/** Above the traits. */
const WANTS_AUTHENTIC_DATA = 1 << 16;

/** What becomes of the outcome for which a flight was begun. */
export interface FlightEnd {
  /** @returns what the client gets */
  arrived(outcome: Outcome, flight: Flight): Outcome;
}

/** The flights of one cache. There are as many as the plugins behind let wait. */
export class FlightTable {
  /** Those that can be joined, in chains by the low bits of their hashes: no `Map`, for the reason that `lib/linked-list.ts` tells. */
  readonly #chains: (Flight | undefined)[] = new Array<Flight | undefined>(CHAINS);
  readonly #outdated = new OutdatedNames();
  #size = 0;
  #waiting = 0;

  /** Queries that wait for the answers to others. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * A flight whose answer will also do for this query.
   *
   * An internal lookup never waits for a flight: the flight may be waiting for it, itself or by way of others. HINFO is never
   * waited for because `loop` must see its probe each time that it comes round. An answer cut to the size of a smaller client is
   * no answer for a larger one, and one for the network of a client none for others.
   */
  joinable({ asked, hash, traits }: AwaitedQuery): Flight | undefined {
    if (asked.depth > 0 || asked.type === RecordType.HINFO || this.#waiting >= MAX_WAITING) return undefined;
    const flight = this.#find(hash);
    if (flight === undefined || flight.traits !== traits || namesClientSubnet(asked)) return undefined;
    if (flight.asked.type !== asked.type || flight.asked.class !== asked.class) return undefined;
    if (replyCapacity(flight.asked) < replyCapacity(asked)) return undefined;
    return flight.asked.name.equals(asked.name) && !this.isOutdated(flight) ? flight : undefined;
  }

  /** What is on its way for these names and those below them is outdated. */
  outdate(names: readonly Name[]): void {
    // Names change by the hundred a second where a cluster does, and thousands of questions may be on their way: nobody goes through them.
    if (this.#size > 0) this.#outdated.add(names);
  }

  isOutdated({ asked, askedAt }: Flight): boolean {
    return askedAt !== this.#outdated.time && this.#outdated.covers(asked.name, askedAt);
  }

  /** Whether one of the names that its answer rests on has changed since it was asked. What came at once cannot be outdated. */
  mentionsOutdated(flight: Flight | undefined, { count, octets, starts }: MentionedNames): boolean {
    if (flight === undefined || flight.askedAt === this.#outdated.time) return false;
    for (let index = 0; index < count; index++) {
      const start = starts[index] as number;
      const end = starts[index + 1] as number;
      if (this.#outdated.coversOctets(octets, start, end, flight.askedAt)) return true;
    }
    return false;
  }

  add(query: Query, pending: AwaitedQuery, arrival: FlightEnd): Flight {
    const flight = new Flight(query, pending, arrival, this.#outdated.time);
    this.#size++;
    if (namesClientSubnet(pending.asked)) return flight;
    const known = this.#find(pending.hash);
    if (known !== undefined) {
      const isBetter = replyCapacity(known.asked) > replyCapacity(flight.asked);
      if (isBetter && !this.isOutdated(known)) return flight;
      this.#close(known);
    }
    const chain = flight.hash & (CHAINS - 1);
    flight.neighbour = this.#chains[chain];
    this.#chains[chain] = flight;
    return flight;
  }

  /** From now on nobody can join. */
  #close(flight: Flight): void {
    const chain = flight.hash & (CHAINS - 1);
    let before: Flight | undefined;
    for (let at = this.#chains[chain]; at !== flight; at = at.neighbour) {
      if (at === undefined) return;
      before = at;
    }
    if (before === undefined) this.#chains[chain] = flight.neighbour;
    else before.neighbour = flight.neighbour;
    flight.neighbour = undefined;
  }

  remove(flight: Flight): void {
    this.#close(flight);
    if (--this.#size === 0) this.#outdated.clear();
  }

  enter(flight: Flight): void {
    flight.waiting++;
    this.#waiting++;
  }

  leave(): void {
    this.#waiting--;
  }

  #find(hash: number): Flight | undefined {
    let flight = this.#chains[hash & (CHAINS - 1)];
    while (flight !== undefined && flight.hash !== hash) flight = flight.neighbour;
    return flight;
  }
}

/** A power of two. The hashes are keyed, so nobody can choose names that fall into one chain. */
const CHAINS = 4096;

/** More than these ask for themselves: the bounds of the plugins behind then count for them. */
const MAX_WAITING = 10_000;

/** The largest reply that the asker can take; plugins behind the cache may cut what they get to it. */
function replyCapacity(query: Query): number {
  return query.takesLongReplies ? 0xffff : query.udpSize;
}
