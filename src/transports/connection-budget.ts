/**
 * Limits shared by all stream connections of a data plane: their number, and the memory that they hold for clients that send or
 * read slowly. At the maximum number, a new connection replaces the one that has been silent the longest, so silent clients do not
 * shut out others. At the memory limit, the connections that hold the most are closed.
 */
import { BufferPool } from "../lib/collections/buffer-pool.ts";
import { LinkedList, type ListPlace } from "../lib/collections/linked-list.ts";

/** A connection as the budget sees it. */
export interface BudgetedConnection {
  /** Its place in the budget, set only by the budget; `undefined` at first. */
  budgetPlace: ListPlace<BudgetedConnection> | undefined;
  /** Whether it has a query in flight: such a connection is not closed for another one. */
  readonly awaitsAnswers: boolean;
  /** Memory that it takes as long as it is open, even when idle. */
  readonly octets: number;
  destroy(): void;
  /** Closes it at once and counts it, because it is the largest holder when all connections hold too much. Default: `destroy`. */
  giveUp?(): void;
}

/** The interface between a connection and the budget. */
export interface ConnectionAccount {
  /** Octets that it may hold before the server stops reading from it. */
  readonly unsentLimit: number;
  /** Whether a message of this many octets is accepted. */
  takes(octets: number): boolean;
  /** Whether this many more octets are within the limit of the process. */
  hasRoomFor(octets: number): boolean;
  /** A chunk was read from it, or written to it. */
  notePassed(octets: number): void;
  /** A whole message has arrived. */
  heardFrom(): void;
  /**
   * Sets the octets that it holds: replies that its client has not read, and received data that is not processed yet. Before this
   * returns, the largest holders may be closed.
   * @param isStuck whether the client reads nothing, so that the system's buffers are full as well
   */
  holds(octets: number, isStuck: boolean): void;
  /** Closes it at once and counts it, because its client does not read. */
  giveUp(): void;
}

export interface ConnectionLimits {
  /** Simultaneous connections. */
  readonly maxConnections: number;
  /** Memory of the connections themselves, in total. */
  readonly maxOctets: number;
  /** Octets that one client may leave unread. */
  readonly maxUnsent: number;
  /** Octets that all clients together may leave unread. */
  readonly maxUnsentOfAll: number;
  /** Octets that the system buffers for a connection whose client reads nothing, if they count. */
  readonly ofSystem: number;
  /** Octets of long messages that may have become garbage. Each exists two or three times: as read, as reassembled, and as kept. */
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

/** Memory of a TCP connection, and of one with TLS, including the kernel's. */
export const TCP_OCTETS = 8 * 1024;
export const TLS_OCTETS = 28 * 1024;

/** Connections examined to find one that waits for no answer. */
const MAX_LOOKED_AT = 64;
/** Connections closed for a new one after the limit was lowered. */
const MAX_CLOSED = 16;
/** Shorter chunks and messages are collected by V8 in time. */
const LONG = 4096;
/** Octets of waiting replies that one connection may hold unreported. Most are sent before a report would matter. */
export const UNNOTICED = 4096;
/** Node's objects for a waiting reply, in addition to its octets. */
export const REPLY_OBJECTS_OCTETS = 256;
/**
 * When connections hold too much, closing goes on down to this share of the limit, so that the next write does not have to check
 * again.
 */
export const LEFT_HELD = 0.75;

/** Default maximum of a listener with its own limit (docs/spec/coredns-behaviour.md#listeners). */
const USUAL_OWN = 200;

/** Descriptors reserved for other uses: listeners, upstreams, files, the cluster's API, probes. */
const RESERVED_DESCRIPTORS = 128;

/**
 * The number of connections for a process with this many descriptors: three quarters of the unreserved ones.
 * @param planes data planes that share the process
 * @param own listeners with a limit of their own, which is at most the result
 */
export function connectionsWithin(descriptors: number, planes: number, own = 0): number {
  const left = Math.floor((descriptors - RESERVED_DESCRIPTORS) * 0.75);
  // An equal share, or the rest after each own listener has its default.
  const share = Math.max(Math.floor(left / (1 + own)), left - own * USUAL_OWN);
  const ofAll = Math.min(DEFAULT_CONNECTION_LIMITS.maxConnections, Math.max(16, share));
  return Math.max(4, Math.floor(ofAll / planes));
}

export class ConnectionBudget {
  #limits: ConnectionLimits;
  /** For large replies, until their clients have read them. */
  readonly buffers: BufferPool;
  /** Counts the octets of all parts. */
  readonly #whole: ConnectionBudget | undefined;
  /** Ordered by last message, oldest first. */
  readonly #connections = new LinkedList<BudgetedConnection>();
  /** Octets by connection, if it holds any. */
  readonly #held = new Map<BudgetedConnection, number>();
  #unsent = 0;
  /** Of the connections themselves. */
  #octets = 0;
  #passed = 0;
  readonly #onGarbage: (() => void) | undefined;

  /**
   * @param whole the budget that this one is a part of: connections are limited separately, octets together
   * @param onGarbage called when enough long messages have become garbage
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

  /** Closes the connections that exceed the new limits. */
  set limits(limits: ConnectionLimits) {
    this.#limits = limits;
    this.#shrink();
  }

  get connections(): number {
    return this.#connections.size;
  }

  /** Memory of the connections themselves. */
  get octets(): number {
    return this.#whole?.octets ?? this.#octets;
  }

  /** Octets held by connections, as of their last reports. */
  get unsent(): number {
    return this.#whole?.unsent ?? this.#unsent;
  }

  /**
   * Admits a new connection.
   * @param onTurnedAway called for each connection that was closed: a silent one, or else the new one
   * @returns false if the new one must be closed
   */
  admit(connection: BudgetedConnection, onTurnedAway?: () => void): boolean {
    const { octets } = connection;
    while (this.#connections.size >= this.limits.maxConnections) {
      onTurnedAway?.();
      if (!this.#closeLongestSilent()) return false;
    }
    for (let closed = 0; this.#isOverWith(octets) && closed < MAX_CLOSED; closed++) {
      onTurnedAway?.();
      // Also closes connections of other listeners: filling the memory on one port must not shut out the clients of another.
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

  /** A whole message has arrived. */
  heardFrom(connection: BudgetedConnection): void {
    if (connection.budgetPlace !== undefined) this.#connections.moveToEnd(connection.budgetPlace);
  }

  /**
   * Octets of replies that a connection may leave unread before the server stops reading from it: less if many connections are
   * behind.
   */
  get unsentLimit(): number {
    if (this.#whole !== undefined) return this.#whole.unsentLimit;
    return Math.min(this.limits.maxUnsent, this.limits.maxUnsentOfAll / Math.max(1, this.#held.size));
  }

  /** Whether a message of this many octets is accepted. */
  takes(octets: number): boolean {
    if (this.#whole !== undefined) return this.#whole.takes(octets);
    return octets < LONG || this.limits.takesLong;
  }

  /** Whether this many more octets are within the limit of the process. */
  hasRoomFor(octets: number): boolean {
    if (this.#whole !== undefined) return this.#whole.hasRoomFor(octets);
    return this.#unsent + octets <= this.limits.maxUnsentOfAll;
  }

  /** Sets the octets that a connection holds. Over the common limit, the largest holders are closed, perhaps including this one. */
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

  /** Closes the largest holders while the common limit is exceeded. */
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

  /** Whether this many more octets would exceed the limit. A single connection is always allowed. */
  #isOverWith(octets: number): boolean {
    const { limits } = this.#whole ?? this;
    return this.octets > 0 && this.octets + octets > limits.maxOctets;
  }

  #noteOctets(octets: number): void {
    if (this.#whole === undefined) this.#octets += octets;
    else this.#whole.#noteOctets(octets);
  }

  /** @returns false if no connection is silent */
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
