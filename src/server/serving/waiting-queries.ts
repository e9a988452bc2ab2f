/**
 * Queries that wait for something, oldest first. There is a bound: past it the oldest go without an answer, since their
 * clients are the first to have given up.
 */

import type { LateFollower } from "../../plugin/chain/late-outcome.ts";
import type { Endpoint, TransportName } from "../../plugin/message/endpoint.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";
import type { Arrival, Listener, Query } from "../../plugin/query/query.ts";
import type { ReplyPort } from "../../transports/transport.ts";
import type { InFlight } from "./in-flight.ts";

/** What becomes of queries that wait. */
export interface WaitingEnds {
  /** It has to make room, and is none of those that wait any more. */
  givenUp(waiting: WaitingQuery): void;
  /** Its outcome is there, whether it still waits or not. */
  settled(waiting: WaitingQuery, outcome: Outcome): void;
}

/** What queries have in common that came the same way and began in one configuration: one object for all of them. */
export class WaitingOrigin {
  readonly listener: Listener;
  readonly transport: TransportName;
  readonly inFlight: InFlight;
  readonly ends: WaitingEnds;
  /** By the clock, milliseconds: what queries know of their arrival is how much later it was. */
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

  /** Whether it serves for a query that came then. */
  isNear(receivedAt: number): boolean {
    const later = receivedAt - this.since;
    return later >= 0 && later < LONGEST_SERVICE;
  }
}

/** Milliseconds: as microseconds they are a number of 31 bits. One with a fraction would be one more object. */
const LONGEST_SERVICE = 1_000_000;

/** One query that waits, a link of the list; and what the query knows of its arrival meanwhile. */
export class WaitingQuery implements LateFollower, Arrival {
  readonly query: Query;
  readonly port: ReplyPort;
  readonly origin: WaitingOrigin;
  /** Microseconds, from {@link WaitingOrigin.since}. */
  readonly #received: number;
  older: WaitingQuery | undefined;
  newer: WaitingQuery | undefined;
  /** False once it was answered or given up. */
  waits = true;

  /** Places that it takes: {@link placesOf}. */
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

/** Octets of a message that one place is meant for: most queries have a tenth of that. */
const OCTETS_A_PLACE = 512;

/** Places of a query of so many octets. A long one is kept as it came, and once more as it is passed on: a few thousand of them would fill the memory. */
export function placesOf(octets: number): number {
  return 1 + Math.floor(octets / OCTETS_A_PLACE);
}

/** A listener with queries that wait. */
export interface RoomUser {
  /** Places that they take. */
  readonly waiting: number;
  giveUpOldest(): void;
}

/** What the listeners of a thread share: the queries that wait at all of them. */
export class WaitingRoom {
  /** Places. May change at any time, as that of {@link WaitingQueries}. */
  limit = Number.POSITIVE_INFINITY;
  /** Places that are taken. */
  size = 0;
  readonly #listeners: () => Iterable<RoomUser>;

  /** @param listeners those that are open */
  constructor(listeners: () => Iterable<RoomUser>) {
    this.#listeners = listeners;
  }

  /** Where it is full, the oldest queries go of the listener that has the most: a flood of one does not cost another one's. */
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
  /** Places. May change at any time: the next query that comes makes room then. */
  limit: number;
  #oldest: WaitingQuery | undefined;
  #newest: WaitingQuery | undefined;
  #size = 0;
  readonly #room: WaitingRoom | undefined;

  constructor(limit: number, room?: WaitingRoom) {
    this.limit = limit;
    this.#room = room;
  }

  /** Places that are taken. */
  get size(): number {
    return this.#size;
  }

  /** There is always room for one, however long. */
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
