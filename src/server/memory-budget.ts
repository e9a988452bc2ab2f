/** How the memory that the process may have is shared out. */

export interface MemoryBudget {
  /** Octets; `undefined` where nobody set a limit. */
  readonly limit: number | undefined;
  /** Queries of a listener that may wait at one time. */
  readonly waiting: number;
  /** Octets that all clients of stream connections together may leave unread. */
  readonly unsent: number;
  /** Octets of resident memory from which on the server sheds. */
  readonly tight: number;
}

/** Octets that a query takes while it waits, with all that waits for it: as resident memory grows where `forward` asks behind `cache`. */
export const WAITING_OCTETS = 1280;

const MOST_WAITING = 10_000;
const LEAST_WAITING = 500;
const MOST_UNSENT = 32 * 1024 * 1024;
const LEAST_UNSENT = 1024 * 1024;

/**
 * An eighth of the limit for queries that wait, and one for replies that nobody reads; the program itself, the cluster and the cache need the
 * rest.
 * @param limit octets
 */
export function memoryBudget(limit: number | undefined): MemoryBudget {
  if (limit === undefined)
    return { limit, waiting: MOST_WAITING, unsent: MOST_UNSENT, tight: Number.POSITIVE_INFINITY };
  const share = limit / 8;
  return {
    limit,
    waiting: clamp(share / WAITING_OCTETS, LEAST_WAITING, MOST_WAITING),
    unsent: clamp(share, LEAST_UNSENT, MOST_UNSENT),
    tight: Math.floor(limit * 0.9),
  };
}

/** The same with a quarter of what may wait, for as long as memory is tight. */
export function tightened(budget: MemoryBudget): MemoryBudget {
  return { ...budget, waiting: Math.ceil(budget.waiting / 4), unsent: Math.ceil(budget.unsent / 4) };
}

function clamp(value: number, least: number, most: number): number {
  return Math.floor(Math.min(Math.max(value, least), most));
}
