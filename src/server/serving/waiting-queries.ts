/**
 * Pending queries, oldest first. There is a bound: beyond it the oldest are dropped, since their clients are the
 * first to give up.
 */

import type { LateFollower } from "../../plugin/chain/late-outcome.ts";
import type { Endpoint, TransportName } from "../../plugin/message/endpoint.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";
import type { Arrival, Listener, Query } from "../../plugin/query/query.ts";
import type { ReplyPort } from "../../transports/transport.ts";
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

  constructor(limit: number, room?: WaitingRoom) {
    this.limit = limit;
    this.#room = room;
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
    return waiting;
  }

  giveUpOldest(): void {
    const given = this.#oldest;
    if (given === undefined) return;
    this.remove(given);
    given.origin.ends.givenUp(given);
  }

  /** @returns false when it was removed already */
  remove(waiting: WaitingQuery): boolean {
    if (!waiting.waits) return false;
    waiting.waits = false;
    const { older, newer } = waiting;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    waiting.older = undefined;
    waiting.newer = undefined;
    const { places } = waiting;
    this.#size -= places;
    if (this.#room !== undefined) this.#room.size -= places;
    return true;
  }
}
