/**
 * Pending queries, oldest first. There is a bound: beyond it the oldest are dropped, since their clients are the
 * first to give up. But a client that holds more than its share of the places loses its own, not those of others.
 */

import type { LateFollower } from "../../plugin/chain/late-outcome.ts";
import type { Endpoint, TransportName } from "../../plugin/message/endpoint.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";
import type { Arrival, Listener, Query } from "../../plugin/query/query.ts";
import type { ReplyPort } from "../../transports/transport.ts";
import { ClientShares } from "./client-shares.ts";
import type { InFlight } from "./in-flight.ts";

/** Called at the end of pending queries. */
export interface WaitingEnds {
  /** The query was dropped to make room, and is not pending any more. */
  givenUp(waiting: WaitingQuery): void;
  /** The outcome has arrived, whether the query is still pending or not. */
  settled(waiting: WaitingQuery, outcome: Outcome): void;
}

/** Shared by queries that came over the same transport and began in one configuration. */
export class WaitingOrigin {
  readonly listener: Listener;
  readonly transport: TransportName;
  readonly inFlight: InFlight;
  readonly ends: WaitingEnds;
  /** The time that the queries' arrival times are relative to, by the clock, in milliseconds. */
  readonly since: number;

  constructor(
    { listener, transport, receivedAt }: Pick<Arrival, "listener" | "transport" | "receivedAt">,
    inFlight: InFlight,
    ends: WaitingEnds,
  ) {
    this.listener = listener;
    this.transport = transport;
    this.inFlight = inFlight;
    this.ends = ends;
    this.since = receivedAt;
  }

  /** Whether a query with this arrival time can use it. */
  isNear(receivedAt: number): boolean {
    const later = receivedAt - this.since;
    return later >= 0 && later < LONGEST_SERVICE;
  }
}

/** Milliseconds: in microseconds this fits 31 bits. A fractional number would be another heap object. */
const LONGEST_SERVICE = 1_000_000;

/** One pending query, a link of the list; it also holds the query's arrival time. */
export class WaitingQuery implements LateFollower, Arrival {
  readonly query: Query;
  readonly port: ReplyPort;
  readonly origin: WaitingOrigin;
  /** Microseconds, from {@link WaitingOrigin.since}. */
  readonly #received: number;
  older: WaitingQuery | undefined;
  newer: WaitingQuery | undefined;
  /** False once it was answered or dropped. */
  waits = true;
  /** The count of its client, {@link UNCOUNTED} if it does not count. */
  share = UNCOUNTED;

  /** Its number of places: {@link placesOf}. */
  get places(): number {
    return placesOf(this.query.length);
  }

  constructor(query: Query, port: ReplyPort, origin: WaitingOrigin) {
    this.query = query;
    this.port = port;
    this.origin = origin;
    this.#received = Math.round((query.receivedAt - origin.since) * 1000);
  }

  get receivedAt(): number {
    return this.origin.since + this.#received / 1000;
  }

  get listener(): Listener {
    return this.origin.listener;
  }

  get transport(): TransportName {
    return this.origin.transport;
  }

  get client(): Endpoint {
    return this.port.client;
  }

  get local(): Endpoint {
    return this.port.local;
  }

  settle(outcome: Outcome): void {
    this.origin.ends.settled(this, outcome);
  }
}

const UNCOUNTED = -1;
/** A client with more than this part of all places is above its share. */
const SHARE = 1 / 8;
/** Clients are counted from this part of all places on, so that they cost nothing while there is no crowd. */
const CROWD = 1 / 2;

/** Octets of a message that one place covers: most queries are far shorter. */
const OCTETS_A_PLACE = 512;

/**
 * The number of places of a query. A long query is kept as received, and once more as it is forwarded: a few thousand
 * of them would fill the memory.
 */
export function placesOf(octets: number): number {
  return 1 + Math.floor(octets / OCTETS_A_PLACE);
}

/** A listener with pending queries. */
export interface RoomUser {
  /** The number of places in use. */
  readonly waiting: number;
  giveUpOldest(): void;
}

/** The bound on pending queries that the listeners of a thread share. */
export class WaitingRoom {
  /** Places. May change at any time, like that of {@link WaitingQueries}. */
  limit = Number.POSITIVE_INFINITY;
  /** Places in use. */
  size = 0;
  readonly #listeners: () => Iterable<RoomUser>;

  /** @param listeners the open ones */
  constructor(listeners: () => Iterable<RoomUser>) {
    this.#listeners = listeners;
  }

  /**
   * If it is full, drops the oldest queries of the listener that has the most, so that a flood on one listener costs
   * the others nothing.
   */
  makeRoom(places: number): void {
    while (this.size > 0 && this.size + places > this.limit) {
      let most: RoomUser | undefined;
      for (const listener of this.#listeners()) if (listener.waiting > (most?.waiting ?? 0)) most = listener;
      if (most === undefined) return;
      most.giveUpOldest();
    }
  }
}

export class WaitingQueries {
  /** Places. May change at any time: the next query makes room then. */
  limit: number;
  #oldest: WaitingQuery | undefined;
  #newest: WaitingQuery | undefined;
  #size = 0;
  readonly #room: WaitingRoom | undefined;
  readonly #seed: number;
  /** Made in the first crowd. */
  #shares: ClientShares | undefined;
  /** Where the search for queries above a share goes on: older ones were below. */
  #next: WaitingQuery | undefined;
  /** Queries that must come before another search can find a client above its share. */
  #fruitless = 0;

  /** @param seed 32 bits that an attacker cannot guess */
  constructor(limit: number, room?: WaitingRoom, seed = 0) {
    this.limit = limit;
    this.#room = room;
    this.#seed = seed;
  }

  /** Places in use. */
  get size(): number {
    return this.#size;
  }

  /** There is always room for one query, however long. */
  add(query: Query, port: ReplyPort, origin: WaitingOrigin): WaitingQuery {
    const places = placesOf(query.length);
    while (this.#size + places > this.limit && this.#oldest !== undefined) this.giveUpOldest();
    const room = this.#room;
    if (room !== undefined) {
      room.makeRoom(places);
      room.size += places;
    }
    const waiting = new WaitingQuery(query, port, origin);
    waiting.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = waiting;
    else this.#newest.newer = waiting;
    this.#newest = waiting;
    this.#size += places;
    if (this.#fruitless > 0) this.#fruitless -= places;
    if (this.#size > CROWD * this.#bound) this.#count(waiting, places);
    return waiting;
  }

  /** Drops the oldest query, or the oldest of clients above their share if that of the oldest is not. */
  giveUpOldest(): void {
    const given = this.#oldest;
    if (given === undefined) return;
    const chosen = this.#isAbove(given) ? given : (this.#oldestAbove() ?? given);
    this.remove(chosen);
    chosen.origin.ends.givenUp(chosen);
  }

  get #bound(): number {
    return this.#room === undefined ? this.limit : Math.min(this.limit, this.#room.limit);
  }

  #count(waiting: WaitingQuery, places: number): void {
    this.#shares ??= new ClientShares(this.#seed);
    waiting.share = this.#shares.numberOf(waiting.client);
    this.#shares.add(waiting.share, places);
  }

  #isAbove(waiting: WaitingQuery): boolean {
    if (this.#shares === undefined) return false;
    const number = waiting.share === UNCOUNTED ? this.#shares.numberOf(waiting.client) : waiting.share;
    return this.#shares.placesOf(number) > SHARE * this.#bound;
  }

  /** Goes on where the last search ended, so that a flood is not searched again for each of its queries. */
  #oldestAbove(): WaitingQuery | undefined {
    if (this.#shares === undefined || this.#fruitless > 0) return undefined;
    let waiting = this.#next ?? this.#oldest;
    while (waiting !== undefined && !this.#isAbove(waiting)) waiting = waiting.newer;
    this.#next = waiting;
    if (waiting === undefined) this.#fruitless = SHARE * this.#bound;
    return waiting;
  }

  /** @returns false when it was removed already */
  remove(waiting: WaitingQuery): boolean {
    if (!waiting.waits) return false;
    waiting.waits = false;
    const { older, newer } = waiting;
    if (this.#next === waiting) this.#next = newer;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    waiting.older = undefined;
    waiting.newer = undefined;
    const { places } = waiting;
    if (waiting.share !== UNCOUNTED) this.#shares?.add(waiting.share, -places);
    this.#size -= places;
    if (this.#room !== undefined) this.#room.size -= places;
    return true;
  }
}
