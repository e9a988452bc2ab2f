/** What `npm run bench -- --memory` gives. Megabytes are of 10^6 octets. */
import type { Machine } from "../machine-facts.ts";

export interface MemoryResults {
  readonly startedAt: string;
  readonly machine: Machine;
  readonly names: readonly NamesSample[];
  readonly runs: readonly RunSample[];
  /** Length of each load, seconds. */
  readonly seconds: number;
}

/** A server whose cache holds so many names. */
export interface NamesSample {
  readonly server: string;
  readonly names: number;
  /** Resident, when each has been asked for. */
  readonly megabytes: number;
}

/** Portolan with the usual Corefile beside a live cluster, through one load after the other. */
export interface RunSample {
  readonly name: string;
  readonly about: string;
  readonly restMegabytes: number;
  readonly peakMegabytes: number;
  readonly steps: readonly StepSample[];
}

export interface StepSample {
  readonly step: string;
  readonly queriesPerSecond: number;
  readonly lost: number;
  /** The most that was resident from its beginning to its end. */
  readonly peakMegabytes: number;
  readonly endMegabytes: number;
  /** Of the main thread. */
  readonly pauses: PauseSample | undefined;
  /** Of all other threads with an event loop: the followers of `multisocket`. */
  readonly otherPauses?: PauseSample | undefined;
}

/** The longest ones, milliseconds. */
export interface PauseSample {
  /** A turn of the event loop, collections in it included. */
  readonly turn: number;
  /** The most that a turn took of the processor: less than `turn` where others had it meanwhile. */
  readonly processor: number;
  /** What all but one of a thousand turns took of the processor at most. */
  readonly p999?: number;
  readonly collection: number;
  /** The most that a collection took of the processor, by the thread whose heap it is. */
  readonly collectionProcessor?: number;
}
