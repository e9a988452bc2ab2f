/**
 * Questions sent to the rest of the chain, so that identical ones can wait for the answer instead of being sent as
 * well.
 */
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

/** The answer to a question. */
export interface Landing {
  /** For the query that was sent. */
  readonly outcome: Outcome;
  /** Set for a reply. */
  readonly verdict: Verdict | undefined;
  /** The reply for the waiting queries, which must not change it. Set when a query waits. */
  readonly template: Reply | undefined;
}

/** A question in progress, and the outcome for the first client that sent it. */
export class Flight extends LateOutcome implements AwaitedQuery {
  readonly asked: Query;
  readonly hash: number;
  readonly counters: CacheCounters;
  readonly #arrival: FlightEnd;
  /** Traits and {@link WANTS_AUTHENTIC_DATA}, packed in one number because thousands of flights may wait. */
  readonly #marks: number;
  /** {@link OutdatedNames.time}. */
  readonly askedAt: number;
  /** Number of queries that wait for this answer. */
  waiting = 0;
  /** The next joinable flight in the same hash chain. Belongs to the table. */
  neighbour: Flight | undefined;
  #landed: PromiseWithResolvers<Landing> | undefined;

  /** @param query the query of the client */
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

  /** Never rejects. Get it before the flight lands: most flights have no waiting query and need no promise. */
  get landed(): Promise<Landing> {
    this.#landed ??= Promise.withResolvers<Landing>();
    return this.#landed.promise;
  }

  land(landing: Landing): void {
    this.#landed?.resolve(landing);
  }

  /** Takes the outcome of the rest of the chain, and settles with the outcome for the client. */
  override settle(outcome: Outcome): void {
    super.settle(this.#arrival.arrived(outcome, this));
  }
}

/** The bit above the traits. */
const WANTS_AUTHENTIC_DATA = 1 << 16;

/** Receives the outcome of a flight. */
export interface FlightEnd {
  /** @returns the outcome for the client */
  arrived(outcome: Outcome, flight: Flight): Outcome;
}

/** The flights of one cache. The plugins behind it bound their number. */
export class FlightTable {
  /**
   * Joinable flights, chained by the low bits of their hashes. It is not a `Map`, for the reason given in
   * `lib/linked-list.ts`.
   */
  readonly #chains: (Flight | undefined)[] = new Array<Flight | undefined>(CHAINS);
  readonly #outdated = new OutdatedNames();
  #size = 0;
  #waiting = 0;

  /** Number of queries that wait for the answers to others. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Finds a flight whose answer also serves this query. An internal lookup never waits for a flight: the flight may
   * be waiting for it, directly or indirectly. HINFO never waits because `loop` must see its probe each time it comes
   * round. An answer truncated for a smaller client does not serve a larger one, and an answer for the network of one
   * client does not serve others.
   */
  joinable({ asked, hash, traits }: AwaitedQuery): Flight | undefined {
    if (asked.depth > 0 || asked.type === RecordType.HINFO || this.#waiting >= MAX_WAITING) return undefined;
    const flight = this.#find(hash);
    if (flight === undefined || flight.traits !== traits || namesClientSubnet(asked)) return undefined;
    if (flight.asked.type !== asked.type || flight.asked.class !== asked.class) return undefined;
    if (replyCapacity(flight.asked) < replyCapacity(asked)) return undefined;
    return flight.asked.name.equals(asked.name) && !this.isOutdated(flight) ? flight : undefined;
  }

  /** Marks flights for these names and the names below as outdated. */
  outdate(names: readonly Name[]): void {
    // In a busy cluster hundreds of names change in a second while thousands of questions may be in flight, so this
    // never walks the flights.
    if (this.#size > 0) this.#outdated.add(names);
  }

  isOutdated({ asked, askedAt }: Flight): boolean {
    return askedAt !== this.#outdated.time && this.#outdated.covers(asked.name, askedAt);
  }

  /**
   * Whether a name that the answer depends on has changed since the question was sent. An answer that was available
   * at once cannot be outdated.
   */
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

  /** From now on no query can join the flight. */
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

/** A power of two. The hashes are keyed, so an attacker cannot choose names that fall into one chain. */
const CHAINS = 4096;

/** Further queries are sent on their own, and the bounds of the plugins behind the cache apply to them. */
const MAX_WAITING = 10_000;

/** The largest reply that the querier accepts; plugins behind the cache may truncate replies to this size. */
function replyCapacity(query: Query): number {
  return query.takesLongReplies ? 0xffff : query.udpSize;
}
