/**
 * The input of `portolan doctor`: queries as the console reports them, and facts about the server at the beginning
 * and at the end.
 */
import type { CacheAnswer, ConfigurationAnswer, MachineView, NowView } from "../api-types.ts";
import type { TrafficCounter } from "./traffic-counter.ts";

/** The server at one time. */
export interface CapturedServer {
  readonly now: CapturedNow;
  readonly machine: Omit<MachineView, "cpu"> & Partial<Pick<MachineView, "cpu">>;
  readonly caches: CacheAnswer["caches"];
  readonly configuration: Pick<ConfigurationAnswer, "file" | "text" | "blocks"> &
    Partial<Pick<ConfigurationAnswer, "refused">>;
}

/** Facts that older servers do not report. */
type Newer = "notReady" | "troubles" | "servedStale";
type CapturedNow = Omit<NowView, "history" | Newer> & Partial<Pick<NowView, Newer>>;

export interface Capture {
  readonly traffic: TrafficCounter;
  /** At the beginning and at the end; `undefined` for a capture of queries alone. */
  readonly first: CapturedServer | undefined;
  readonly last: CapturedServer | undefined;
  /** The pod of the server, from its manifest. */
  readonly pod: PodTemplate | undefined;
  /** The answer for a name that cannot exist; `undefined` if it was not queried. */
  readonly impossible: ImpossibleName | undefined;
  /** Failed queries that were asked again, the most frequent first. */
  readonly failures: readonly FailedName[];
}

/** A query that failed, asked again at the end of the capture. */
export interface FailedName {
  readonly name: string;
  readonly type: string;
  /** The plugin that failed the clients' queries. */
  readonly plugin: string;
  /** Now. */
  readonly rcode: string;
  /** In the words of `explain`. */
  readonly reason: string;
}

export interface ImpossibleName {
  readonly name: string;
  readonly rcode: string;
  readonly answer: readonly string[];
  readonly plugin: string;
  /** Address of the upstream that answered; absent if it is unknown. */
  readonly upstream?: string;
}

export interface PodTemplate {
  /** `deployment/coredns`. */
  readonly owner: string;
  readonly namespace: string;
  /** Seconds from SIGTERM to SIGKILL. */
  readonly gracePeriod: number;
  /** Seconds that a preStop hook sleeps, if that can be determined. */
  readonly preStopSleep: number;
  readonly container: string;
  readonly readiness: Probe | undefined;
  readonly liveness: Probe | undefined;
  /** Bytes; `undefined` without a limit. */
  readonly memoryLimit: number | undefined;
}

export interface Probe {
  /** Empty unless the probe uses HTTP. */
  readonly path: string;
  readonly period: number;
  readonly failures: number;
  readonly timeout: number;
}
