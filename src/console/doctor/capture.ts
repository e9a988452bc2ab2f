/** What `portolan doctor` judges: queries as the console tells them, and facts about the server at the beginning and at the end. */
import type { CacheAnswer, ConfigurationAnswer, MachineView, NowView } from "../api-types.ts";
import type { TrafficCounter } from "./traffic-counter.ts";

/** The server at one moment. */
export interface CapturedServer {
  readonly now: Omit<NowView, "history">;
  readonly machine: MachineView;
  readonly caches: CacheAnswer["caches"];
  readonly configuration: Pick<ConfigurationAnswer, "file" | "text" | "blocks">;
}

export interface Capture {
  readonly traffic: TrafficCounter;
  /** At the beginning and at the end; `undefined` for a capture that holds queries alone. */
  readonly first: CapturedServer | undefined;
  readonly last: CapturedServer | undefined;
  /** The pod of the server, out of the manifest that makes it. */
  readonly pod: PodTemplate | undefined;
  /** What came back for a name that cannot exist; `undefined` where nobody asked. */
  readonly impossible: ImpossibleName | undefined;
}

export interface ImpossibleName {
  readonly name: string;
  readonly rcode: string;
  readonly answer: readonly string[];
  readonly plugin: string;
}

export interface PodTemplate {
  /** `deployment/coredns`. */
  readonly owner: string;
  readonly namespace: string;
  /** Seconds from the signal to the kill. */
  readonly gracePeriod: number;
  /** Seconds that a hook before the signal sleeps, as far as that can be told. */
  readonly preStopSleep: number;
  readonly container: string;
  readonly readiness: Probe | undefined;
  readonly liveness: Probe | undefined;
  /** Octets; `undefined` where there is none. */
  readonly memoryLimit: number | undefined;
}

export interface Probe {
  /** Empty for one that is not by HTTP. */
  readonly path: string;
  readonly period: number;
  readonly failures: number;
  readonly timeout: number;
}
