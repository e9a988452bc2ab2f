/** How the memory that the process may have is shared out. */
import type { SocketBuffers } from "../../transports/tcp-socket.ts";

export interface MemoryBudget {
  /** Octets that the process may have; `undefined` where nobody set a limit. */
  readonly limit: number | undefined;
  /** Threads that answer, each of which has the shares below for itself. */
  readonly threads: number;
  /** Queries of one listener that may wait at one time. */
  readonly waiting: number;
  /** Queries of all listeners together. */
  readonly waitingOfAll: number;
  /** Octets that stream connections may take, whether their clients say something or not. */
  readonly connections: number;
  /** Octets that all clients of stream connections together may leave unread, or send in messages that are not whole. */
  readonly unsent: number;
  /** Octets that the system holds for a connection whose client reads nothing, where they count. */
  readonly ofSystem: number;
  /** Octets of long messages from clients that may become garbage before it is collected. */
  readonly garbage: number;
  /** Whether messages of clients may be longer than most: those are not worth the end of the process. */
  readonly takesLong: boolean;
  /** Octets of resident memory of the process from which on the server sheds. */
  readonly tight: number;
}

/** Octets that a query takes while it waits, with all that waits for it: as resident memory grows where `forward` asks behind `cache`. */
export const WAITING_OCTETS = 1280;

/**
 * The buffers of a connection where memory is limited: a control group counts them (in version 2; in version 1 if it limits them too), and by itself the system lets
 * them grow to 4 MiB and more for a client that reads nothing. A zone transfer over 100 ms still has 1 MB a second.
 */
const LIMITED_BUFFERS: SocketBuffers = { receive: 32 * 1024, send: 64 * 1024 };

/** @param limit of the process, if somebody set one */
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
 * An eighth of the limit for queries that wait, one for replies that nobody reads, and a quarter for connections; the program itself, the cluster and the cache need the
 * rest.
 * @param limit octets
 * @param threads how many share it
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

/** The same with a quarter of what may wait and without long messages, for as long as memory is tight. */
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
