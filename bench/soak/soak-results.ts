/** The results of `npm run bench -- --soak`. Megabytes are of 10^6 bytes. */
import type { Machine } from "../machine-facts.ts";
import type { FloodKind } from "./flood-queries.ts";

export interface SoakResults {
  readonly startedAt: string;
  readonly machine: Machine;
  /** For each number of threads. */
  readonly minutes: number;
  readonly runs: readonly SoakRun[];
  /** Absent where control groups could not be made. */
  readonly unread?: readonly UnreadSample[] | undefined;
  /** Absent where control groups could not be made, or QUIC is not available. */
  readonly quicUnread?: QuicUnreadSample | undefined;
}

/** Clients that pipeline over TCP and read nothing, and one that asks a question ten times a second, over a connection of its own each time. */
export interface UnreadSample {
  /** Of the control group. */
  readonly mebibytes: number;
  /** Of clients that read nothing. */
  readonly connections: number;
  readonly asked: number;
  readonly lost: number;
  readonly kills: number;
  /** Of the control group. */
  readonly peakMegabytes: number;
  readonly residentMegabytes: number;
}

/** Clients that ask over many QUIC connections and vanish, and one that asks a question ten times a second over one connection. */
export interface QuicUnreadSample {
  /** Of the control group. */
  readonly mebibytes: number;
  /** Connections that clients began before they vanished. */
  readonly connections: number;
  /** Of these, that the server took. */
  readonly connected: number;
  /** By the client that stays. */
  readonly asked: number;
  readonly lost: number;
  /** By another client, once a second, over a connection of its own each time. */
  readonly askedAnew: number;
  readonly lostAnew: number;
  readonly kills: number;
  /** Of the control group. */
  readonly peakMegabytes: number;
  readonly residentMegabytes: number;
}

/** Portolan with the usual Corefile beside a live cluster, under one flood after the other, round after round. */
export interface SoakRun {
  readonly threads: number;
  /** Before the first flood. */
  readonly restMegabytes: number;
  /** Half a minute after the last one. */
  readonly endMegabytes: number;
  readonly floods: readonly FloodSample[];
}

/** One flood, of all rounds. */
export interface FloodSample {
  readonly flood: FloodKind;
  readonly sent: number;
  readonly answered: number;
  /** The most that was resident, round by round. */
  readonly peakMegabytes: readonly number[];
  /** Queries of the well-behaved client for existing names during the flood. */
  readonly asked: number;
  /** Of these, without an answer. */
  readonly lost: number;
  /** Of these, that went on to the upstream: the others were answered from the cache. */
  readonly forwarded: number;
}
