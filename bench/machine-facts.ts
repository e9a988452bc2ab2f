/** The machine that a run was made on, as its results tell it. */

export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly memoryGigabytes: number;
  readonly kernel: string;
  readonly node: string;
  readonly dnsperf: string;
  readonly commit: string;
  /** Whether Portolan ran as it is published, or from its sources: these start later and take more memory. */
  readonly program: "built" | "sources";
  /** How Portolan receives UDP on this machine. */
  readonly udp: "batched" | "plain";
}
