/** Divides the memory of the process among its uses. */
import type { SocketBuffers } from "../../transports/tcp-socket.ts";

export interface MemoryBudget {
  /** Memory of the process in bytes; `undefined` without a limit. */
  readonly limit: number | undefined;
  /** Threads that answer queries; each has the shares below for itself. */
  readonly threads: number;
  /** Pending queries of one listener. */
  readonly waiting: number;
  /** Pending queries of all listeners together. */
  readonly waitingOfAll: number;
  /** Bytes that stream connections may take, idle ones included. */
  readonly connections: number;
  /** Bytes that all stream clients together may leave unread, or send in incomplete messages. */
  readonly unsent: number;
  /** Bytes that the system holds for a connection whose client does not read, where they count. */
  readonly ofSystem: number;
  /** Bytes of long messages from clients that may become garbage before it is collected. */
  readonly garbage: number;
  /** Whether clients may send messages longer than most: these are not worth an out-of-memory kill. */
  readonly takesLong: boolean;
  /** Resident memory of the process, in bytes, above which the server sheds load. */
  readonly tight: number;
}

/**
 * Bytes of a pending query with everything attached to it, as the growth of resident memory shows with `forward`
 * behind `cache`.
 */
export const WAITING_OCTETS = 1280;

/**
 * The buffers of a connection where memory is limited. A control group counts them (version 2 always, version 1 if it
 * limits them too), and by itself the system lets them grow to 4 MiB and more for a client that does not read. A zone
 * transfer over a long path still gets a usable rate.
 */
const LIMITED_BUFFERS: SocketBuffers = { receive: 32 * 1024, send: 64 * 1024 };

/** @param limit of the process, if one is set */
export function socketBuffers(limit: number | undefined): SocketBuffers | undefined {
  return limit === undefined ? undefined : LIMITED_BUFFERS;
}

const MOST_WAITING = 10_000;
const LEAST_WAITING = 500;
const MOST_UNSENT = 32 * 1024 * 1024;
const LEAST_UNSENT = 1024 * 1024;
const LEAST_CONNECTIONS = 2 * 1024 * 1024;
const MOST_GARBAGE = 8 * 1024 * 1024;
const LEAST_GARBAGE = 1024 * 1024;

/**
 * An eighth of the limit for pending queries, an eighth for unread replies, and a quarter for connections. The
 * program itself, the cluster and the cache need the rest.
 * @param limit in bytes
 * @param threads that share it
 */
export function memoryBudget(limit: number | undefined, threads = 1): MemoryBudget {
  const share = limit === undefined ? Number.POSITIVE_INFINITY : limit / 8 / threads;
  const buffers = socketBuffers(limit);
  const waitingOfAll = Math.floor(Math.max(share / WAITING_OCTETS, LEAST_WAITING));
  return {
    limit,
    threads,
    waiting: Math.min(waitingOfAll, MOST_WAITING),
    waitingOfAll,
    connections: Math.max(2 * share, LEAST_CONNECTIONS),
    unsent: Math.floor(Math.max(Math.min(share, MOST_UNSENT / threads), LEAST_UNSENT)),
    ofSystem: buffers === undefined ? 0 : 2 * (buffers.receive + buffers.send),
    garbage: Math.floor(Math.max(Math.min(share / 8, MOST_GARBAGE), LEAST_GARBAGE)),
    takesLong: true,
    tight: limit === undefined ? Number.POSITIVE_INFINITY : Math.floor(limit * 0.9),
  };
}

/** The budget while memory is tight: a quarter of the pending work, and no long messages. */
export function tightened(budget: MemoryBudget): MemoryBudget {
  return {
    ...budget,
    waiting: Math.ceil(budget.waiting / 4),
    waitingOfAll: Math.ceil(budget.waitingOfAll / 4),
    connections: budget.connections / 4,
    takesLong: false,
    unsent: Math.ceil(budget.unsent / 4),
  };
}
