/** The results of `npm run bench -- --console`. Megabytes are of 10^6 bytes. */
import type { Machine } from "../machine-facts.ts";

export interface ConsoleResults {
  readonly startedAt: string;
  readonly machine: Machine;
  readonly streams: readonly StreamSample[];
  /** Absent without Chromium. */
  readonly page: PageSample | undefined;
}

/** The stream of finished queries under a load, with clients that read it and one that does not. */
export interface StreamSample {
  readonly threads: number;
  readonly seconds: number;
  /** The report of dnsperf. */
  readonly queriesPerSecond: number;
  readonly sent: number;
  readonly answered: number;
  /** By the server's own count, of the same queries. */
  readonly finished: number;
  /** How many queries those stand for that the console has looked at, and how many it says to have missed. */
  readonly told: number;
  readonly missed: number;
  /** Resident, in turn: before the load, at each second of it, at its end. */
  readonly megabytes: readonly number[];
  /** Queries that a client of the event stream was sent, and the number that the stream reported as left out. */
  readonly followed: FollowedRows;
  /** The same of `portolan tail -json`, which prints the latter in words. */
  readonly tailed: FollowedRows;
  /** The server's count of rows that were not sent, of all clients together: one of them reads nothing. */
  readonly droppedRows: number;
}

export interface FollowedRows {
  readonly rows: number;
  readonly leftOut: number;
}

/** The page of the console in Chromium, from two starts, in turns. */
export interface PageSample extends PageLoads {
  readonly chromium: string;
  /** From a tab that shows a page of another site; the others are from an empty tab. Absent in measurements from before it was taken. */
  readonly fromOtherSite?: PageLoads;
}

/** Beside an empty page, in turns. Milliseconds from the start of the navigation. */
export interface PageLoads {
  readonly page: readonly PageLoad[];
  readonly empty: readonly PageLoad[];
}

export interface PageLoad {
  /** The end of the event `load`. */
  readonly loaded: number;
  /** The first frame with what the page shows. */
  readonly shown: number;
  /** The page follows its server, and takes clicks. Absent for the empty one, and for measurements from before it was taken. */
  readonly live?: number;
}
