/** How long lists and watches are waited for. */

export interface ListWatchTimings {
  /** A watch of which nothing is heard for so long is given up, in milliseconds. Servers send a bookmark every minute. */
  readonly watchSilenceMs: number;
  /** A list that does not go on for so long is given up. */
  readonly listSilenceMs: number;
  /** A list that comes as the beginning of a watch and has no end after so long is read page by page. */
  readonly streamedListMs: number;
  /** A watch that ends sooner than this without any event counts as a failure. */
  readonly shortWatchMs: number;
}

export const DEFAULT_TIMINGS: ListWatchTimings = {
  watchSilenceMs: 150_000,
  listSilenceMs: 30_000,
  streamedListMs: 60_000,
  shortWatchMs: 1_000,
};
