/** The report of every load generator. */
export interface LoadCounts {
  readonly sent: number;
  readonly answered: number;
  /** Queries without an answer in the time that the generator grants. */
  readonly lost: number;
  /** From the first query to the last answer. */
  readonly seconds: number;
  /** Answers by rcode, by its name. */
  readonly rcodes: Readonly<Record<string, number>>;
}

/** Microseconds. */
export interface Percentiles {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

export interface TimedLoad extends LoadCounts {
  /** From the time at which a query was due to its answer; undefined where nothing was answered. */
  readonly latency: Percentiles | undefined;
  /** From the time at which a query was due to the call that sent it: how late the generator itself was. */
  readonly sendDelay: Percentiles | undefined;
}
