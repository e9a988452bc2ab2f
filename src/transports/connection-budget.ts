/**
 * What all stream connections of a data plane share: how many there may be, and how many octets they may hold in memory for clients that
 * send or read slowly. Where there are as many as allowed, the one that has been silent the longest goes for a new one: a client that opens
 * connections and says nothing does not shut out others. Where they hold more than allowed, those that hold the most are closed.
 */
import { BufferPool } from "../lib/collections/buffer-pool.ts";
import { LinkedList, type ListPlace } from "../lib/collections/linked-list.ts";

/** A connection as the budget sees it. */
export interface BudgetedConnection {
  /** Where it stands in the budget, which alone sets this; `undefined` at first. */
  budgetPlace: ListPlace<BudgetedConnection> | undefined;
  /** Whether a query of it is under way: such a connection is not closed for another one. */
  readonly awaitsAnswers: boolean;
  /** Memory that it takes as long as it is open, whether it says something or not. */
  readonly octets: number;
  destroy(): void;
  /** Closes it at once and counts it: all together hold too much, and this one holds the most. `destroy` where it is absent. */
  giveUp?(): void;
}

/** What a connection tells the budget about itself, and asks of it. */
export interface ConnectionAccount {
  /** Octets that it may hold before it is read no further. */
  readonly unsentLimit: number;
  /** Whether a message of so many octets is taken. */
  takes(octets: number): boolean;
  /** Whether so many octets more are within the bound of the process. */
  hasRoomFor(octets: number): boolean;
  /** A chunk was read from it, or written to it. */
  notePassed(octets: number): void;
  /** A whole message has come. */
  heardFrom(): void;
  /**
   * It holds so many octets now: replies that its client has not read, and what the client sent that is not taken yet. Whoever holds the most may be closed for
   * that before this returns.
   * @param isStuck whether the client reads nothing, so that the buffers of the system are full as well
   */
  holds(octets: number, isStuck: boolean): void;
  /** Closes it at once and counts it, because its client does not read. */
  giveUp(): void;
}

export interface ConnectionLimits {
  /** Connections at one time. */
  readonly maxConnections: number;
  /** Octets that the connections themselves may take, all of them together. */
  readonly maxOctets: number;
  /** Octets that one client may leave unread. */
  readonly maxUnsent: number;
  /** Octets that all clients together may leave unread. */
  readonly maxUnsentOfAll: number;
  /** Octets that the system holds for a connection whose client reads nothing, where they count. */
  readonly ofSystem: number;
  /** Octets of long messages that may have become garbage. Each is there two or three times: as it was read, put together, and kept. */
  readonly maxGarbage: number;
  /** Whether messages may be longer than 4 KiB. */
  readonly takesLong: boolean;
}

export const DEFAULT_CONNECTION_LIMITS: ConnectionLimits = {
  maxConnections: 16_384,
  maxOctets: Number.POSITIVE_INFINITY,
  maxUnsent: 512 * 1024,
  maxUnsentOfAll: 32 * 1024 * 1024,
  ofSystem: 0,
  maxGarbage: 8 * 1024 * 1024,
  takesLong: true,
};

/** What a connection takes with all that stands for it, in the kernel as well: a TCP connection, and one with TLS (measured with 10,000 that are idle). */
export const TCP_OCTETS = 8 * 1024;
export const TLS_OCTETS = 28 * 1024;

/** Connections looked at to find one that waits for no answer. */
const MAX_LOOKED_AT = 64;
/** Connections closed for a new one, where less may be open than before. */
const MAX_CLOSED = 16;
/** Chunks and messages below this are short: V8 collects them in time. */
const LONG = 4096;
/** Octets that one connection may hold unnoticed, of replies that wait to be written. Most are on their way, and gone before anyone could have asked. */
export const UNNOTICED = 4096;
/** What a reply that waits takes beside its octets: the objects of Node that stand for it. */
export const REPLY_OBJECTS_OCTETS = 256;
/** Where connections hold too much, as many are closed as leave this share of what they may hold: the next one that writes must not have to look again. */
const LEFT_HELD = 0.75;

/** Connections of a listener with a bound of its own where nobody says otherwise (docs/spec/coredns-behaviour.md#listeners). */
const USUAL_OWN = 200;

/** Descriptors that connections leave to everything else: listeners, upstreams, files, the API of the cluster, probes. */
const RESERVED_DESCRIPTORS = 128;

/**
 * How many connections a process may hold that has so many descriptors: three quarters of what is left when everything else has its own.
 * @param planes data planes that share the process
 * @param own listeners whose connections are bounded for themselves, by no more than this
 */
export function connectionsWithin(descriptors: number, planes: number, own = 0): number {
  const left = Math.floor((descriptors - RESERVED_DESCRIPTORS) * 0.75);
  // Each has as much as all others, or as much as it usually may have and leaves the rest.
  const share = Math.max(Math.floor(left / (1 + own)), left - own * USUAL_OWN);
  const ofAll = Math.min(DEFAULT_CONNECTION_LIMITS.maxConnections, Math.max(16, share));
  return Math.max(4, Math.floor(ofAll / planes));
}

export class ConnectionBudget {
  #limits: ConnectionLimits;
  /** For large replies, until their clients have read them. */
  readonly buffers: BufferPool;
  /** What counts the octets of all. */
  readonly #whole: ConnectionBudget | undefined;
  /** Those not heard of for the longest time come first. */
  readonly #connections = new LinkedList<BudgetedConnection>();
  /** Octets of those that hold some. */
  readonly #held = new Map<BudgetedConnection, number>();
  #unsent = 0;
  /** Of the connections themselves. */
  #octets = 0;
  #passed = 0;
  readonly #onGarbage: (() => void) | undefined;

  /**
   * @param whole a budget that this one has a part of: connections are bounded apart, and octets are those of the whole
   * @param onGarbage called when much of what passed is garbage by now
   */
  constructor(limits: Partial<ConnectionLimits> = {}, whole?: ConnectionBudget, onGarbage?: () => void) {
    this.#limits = { ...DEFAULT_CONNECTION_LIMITS, ...limits };
    this.#whole = whole;
    this.#onGarbage = onGarbage;
    this.buffers = whole?.buffers ?? new BufferPool();
  }

  get limits(): ConnectionLimits {
    return this.#limits;
  }

  /** Those that hold more than they may from now on are closed. */
  set limits(limits: ConnectionLimits) {
    this.#limits = limits;
    this.#shrink();
  }

  get connections(): number {
    return this.#connections.size;
  }

  /** Octets that the connections themselves take. */
  get octets(): number {
    return this.#whole?.octets ?? this.#octets;
  }

  /** Octets that connections hold, as far as is known: each tells when it reads or writes. */
  get unsent(): number {
    return this.#whole?.unsent ?? this.#unsent;
  }

  /**
   * Takes a new connection in.
   * @param onTurnedAway told of each connection that had to go: a silent one, or the new one where there is none
   * @returns false where the new one has to go
   */
  admit(connection: BudgetedConnection, onTurnedAway?: () => void): boolean {
    const { octets } = connection;
    while (this.#connections.size >= this.limits.maxConnections) {
      onTurnedAway?.();
      if (!this.#closeLongestSilent()) return false;
    }
    for (let closed = 0; this.#isOverWith(octets) && closed < MAX_CLOSED; closed++) {
      onTurnedAway?.();
      // Those of others go as well: who fills the memory on one port must not shut out the clients of another one.
      const isClosed = this.#closeLongestSilent() || (this.#whole ?? this).#closeLongestSilent();
      if (!isClosed) return false;
    }
    connection.budgetPlace = this.#connections.append(connection);
    this.#noteOctets(octets);
    return true;
  }

  forget(connection: BudgetedConnection): void {
    if (connection.budgetPlace !== undefined && this.#connections.remove(connection.budgetPlace))
      this.#noteOctets(-connection.octets);
    this.noteHeld(connection, 0);
  }

  /** A chunk was read from a connection, or written to it. */
  notePassed(octets: number): void {
    if (this.#whole !== undefined) this.#whole.notePassed(octets);
    else if (octets >= LONG) {
      this.#passed += octets;
      if (this.#passed < this.limits.maxGarbage) return;
      this.#passed = 0;
      this.#onGarbage?.();
    }
  }

  /** A whole message has come. */
  heardFrom(connection: BudgetedConnection): void {
    if (connection.budgetPlace !== undefined) this.#connections.moveToEnd(connection.budgetPlace);
  }

  /** Octets of replies that a connection may leave unread before it is read no further: less where very many are behind. */
  get unsentLimit(): number {
    if (this.#whole !== undefined) return this.#whole.unsentLimit;
    return Math.min(this.limits.maxUnsent, this.limits.maxUnsentOfAll / Math.max(1, this.#held.size));
  }

  /** Whether a message of so many octets is taken. */
  takes(octets: number): boolean {
    if (this.#whole !== undefined) return this.#whole.takes(octets);
    return octets < LONG || this.limits.takesLong;
  }

  /** Whether so many octets more are within the bound of the process. */
  hasRoomFor(octets: number): boolean {
    if (this.#whole !== undefined) return this.#whole.hasRoomFor(octets);
    return this.#unsent + octets <= this.limits.maxUnsentOfAll;
  }

  /** A connection holds so many octets now. Where all hold too much by that, those that hold the most are closed; this one may be among them. */
  noteHeld(connection: BudgetedConnection, octets: number, isStuck = false): void {
    if (this.#whole !== undefined) {
      this.#whole.noteHeld(connection, octets, isStuck);
      return;
    }
    const now = octets === 0 ? 0 : octets + (isStuck ? this.limits.ofSystem : 0);
    const before = this.#held.get(connection) ?? 0;
    if (now === before) return;
    this.#unsent += now - before;
    if (now === 0) this.#held.delete(connection);
    else this.#held.set(connection, now);
    if (now > before) this.#shrink();
  }

  /** Closes those that hold the most, where all hold too much. */
  #shrink(): void {
    const { maxUnsentOfAll } = this.limits;
    if (this.#unsent <= maxUnsentOfAll) return;
    const largestFirst = [...this.#held].sort(([, one], [, other]) => other - one);
    for (const [connection, octets] of largestFirst) {
      if (this.#unsent <= maxUnsentOfAll * LEFT_HELD) return;
      this.#held.delete(connection);
      this.#unsent -= octets;
      if (connection.giveUp === undefined) connection.destroy();
      else connection.giveUp();
    }
  }

  /** Whether more than they may take would be taken with so many octets more. One connection may be there in any case. */
  #isOverWith(octets: number): boolean {
    const { limits } = this.#whole ?? this;
    return this.octets > 0 && this.octets + octets > limits.maxOctets;
  }

  #noteOctets(octets: number): void {
    if (this.#whole === undefined) this.#octets += octets;
    else this.#whole.#noteOctets(octets);
  }

  /** @returns false where there is none */
  #closeLongestSilent(): boolean {
    const silent = this.#longestSilent();
    if (silent === undefined) return false;
    this.forget(silent);
    silent.destroy();
    return true;
  }

  #longestSilent(): BudgetedConnection | undefined {
    let left = MAX_LOOKED_AT;
    for (const connection of this.#connections) {
      if (!connection.awaitsAnswers) return connection;
      if (--left === 0) return undefined;
    }
    return undefined;
  }
}
