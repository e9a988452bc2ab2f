/** The results of `npm run bench -- --memory`. Megabytes are of 10^6 bytes. */
import type { Machine } from "../machine-facts.ts";
import type { GroupEvents } from "./control-group.ts";

export interface MemoryResults {
  readonly startedAt: string;
  readonly machine: Machine;
  readonly names: readonly NamesSample[];
  readonly runs: readonly RunSample[];
  /** Length of each load, seconds. */
  readonly seconds: number;
}

/** A server whose cache holds this many names. */
export interface NamesSample {
  readonly server: string;
  readonly names: number;
  /** Resident, as soon as each has been asked for. */
  readonly megabytes: number;
  /** Half a minute later, without any query. Absent in results from before it was measured. */
  readonly laterMegabytes?: number | undefined;
}

/** Portolan in a control group with little memory, beside one without a limit: both have each load in turns. */
export interface LimitedSample {
  readonly mebibytes: number;
  readonly restMegabytes: number;
  readonly events: GroupEvents;
  readonly steps: readonly LimitedStep[];
}

export interface LimitedStep {
  readonly step: string;
  /** Answers a second, to those of the server without a limit: of each turn. */
  readonly ratios: readonly number[];
  /** CPU a query, likewise: these can be compared where other programs run beside. Absent in older results. */
  readonly costRatios?: readonly number[] | undefined;
  readonly lost: number;
  readonly peakMegabytes: number;
  readonly freePeakMegabytes: number;
}

/** `--limit`: measured by itself, perhaps another day. */
export interface LimitedResults {
  readonly startedAt: string;
  readonly machine: Machine;
  readonly seconds: number;
  readonly sample: LimitedSample;
}

/** Portolan with the usual Corefile beside a live cluster, through one load after the other. */
export interface RunSample {
  readonly name: string;
  readonly about: string;
  readonly restMegabytes: number;
  readonly peakMegabytes: number;
  readonly steps: readonly StepSample[];
  /** The echo server under load on the same core, between the loads. Absent without a compiler, and in older results. */
  readonly echo?: EchoTurns | undefined;
}

/** Turns of a server that does nothing of its own. */
export interface EchoTurns {
  /** On the processor. */
  readonly seconds: number;
  /** Turns of more than 5 ms on the processor. */
  readonly long: number;
  /** Milliseconds. */
  readonly longest: number;
}

export interface StepSample {
  readonly step: string;
  readonly queriesPerSecond: number;
  /** CPU a query, a relist or a reload meanwhile included. Absent in older results, and for the start. */
  readonly microseconds?: number | undefined;
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
  /** How many turns took more than 5 ms of the processor. Absent in older results. */
  readonly long?: number;
  /** The description of these turns. Absent in older results. */
  readonly longTurns?: readonly LongTurn[];
  /** The CPU time that 99.9 % of the turns did not exceed. */
  readonly p999?: number;
  readonly collection: number;
  /** The most that a collection took of the processor, by the thread whose heap it is. */
  readonly collectionProcessor?: number;
}

/** A turn of the event loop that took more than 5 ms of the processor. Facts from `user` on are missing where there is no compiler. */
export interface LongTurn {
  /** When it ended: milliseconds since the epoch. */
  readonly at: number;
  /** Milliseconds, as the three that follow. */
  readonly processor: number;
  readonly wall: number;
  /** By the kernel's ticks. */
  readonly user?: number;
  readonly system?: number;
  /** Faults of pages that were in memory, and of those that were read from a disk. */
  readonly faults?: number;
  readonly reads?: number;
  readonly waits?: number;
  /** How often others were given the processor. */
  readonly preempted?: number;
  /** One for each millisecond on the processor, unless not even the timer's interrupt came through: then the machine was busy with something else. */
  readonly samples?: number;
  /** Where: a line for each stack, how often it was seen, and its innermost addresses. */
  readonly stacks?: string;
}
