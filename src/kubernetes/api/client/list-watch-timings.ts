/** How long lists, watches and connections are waited for, in milliseconds. */

export interface ListWatchTimings {
  /** A watch of which nothing is heard for so long is given up. Servers send a bookmark every minute. */
  readonly watchSilenceMs: number;
  /** A list that does not go on for so long is given up. */
  readonly listSilenceMs: number;
  /** A list that comes as the beginning of a watch and has no end after so long is read page by page. */
  readonly streamedListMs: number;
  /** A server that failed to send a list as the beginning of a watch is asked for that again after so long. */
  readonly streamAgainMs: number;
  /** A watch that ends sooner than this counts as a failure. */
  readonly shortWatchMs: number;
  /** A watch that ran for so long makes up for all failures before it. */
  readonly healthMs: number;
  /** How often an HTTP/2 connection is pinged. */
  readonly pingIntervalMs: number;
  /** An HTTP/2 connection that has brought nothing for so long, answers to pings included, is closed. */
  readonly connectionSilenceMs: number;
}

export const DEFAULT_TIMINGS: ListWatchTimings = {
  watchSilenceMs: 150_000,
  listSilenceMs: 30_000,
  streamedListMs: 60_000,
  streamAgainMs: 600_000,
  shortWatchMs: 1_000,
  healthMs: 60_000,
  // Together 44 s until a dead connection is closed, with the time between two looks at it: client-go takes 45.
  pingIntervalMs: 15_000,
  connectionSilenceMs: 40_000,
};
