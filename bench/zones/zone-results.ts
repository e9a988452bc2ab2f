/** The results of `npm run bench -- --zones`. Megabytes are of 10^6 bytes. */
import type { Machine } from "../machine-facts.ts";

export interface ZoneResults {
  readonly startedAt: string;
  readonly machine: Machine;
  readonly records: number;
  /** Of each load. */
  readonly seconds: number;
  readonly servers: readonly { readonly name: string; readonly version: string }[];
  readonly missingServers: readonly { readonly name: string; readonly reason: string }[];
  readonly samples: readonly ZoneSample[];
}

/** One server in one round. */
export interface ZoneSample {
  readonly round: number;
  readonly server: string;
  /** From the start of the process to the first answer out of the zone, seconds. */
  readonly loadSeconds: number;
  /** Of that, on the processor. */
  readonly loadCpuSeconds: number;
  /** Resident once it is loaded. */
  readonly restMegabytes: number;
  /** Resident after the load. */
  readonly endMegabytes: number;
  readonly queriesPerSecond: number;
  /** CPU time of the server an answer, microseconds. */
  readonly cpuMicroseconds: number;
  readonly lost: number;
}
