/** The definition of a workload. */
export type RecordType = "A" | "AAAA";

export interface Workload {
  readonly name: string;
  readonly title: string;
  readonly about: string;
  readonly load: LoadShape;
  /** Answers that the cache has room for, 0 for no cache. */
  readonly cacheEntries: number;
  /** Lines for the Corefile of servers that have one, in front of the cache; other servers answer the same queries as they are. */
  readonly directives?: readonly string[];
  /**
   * The servers that are compared side by side, because the difference is smaller than the machine's own variation
   * between two measurements.
   */
  readonly besides?: readonly Beside[];
  /** Whether the upstream works during the measurement: it needs some of the load generator's core then. */
  readonly usesUpstream: boolean;
  /** Whether a name that comes again would change what is measured. */
  readonly needsNewNames: boolean;
  /** Whether an echo is a fair lower bound: where no second server is asked. */
  readonly hasFloor: boolean;
  /** Other rcodes under load are an error. */
  readonly rcodes: readonly string[];
  /** Asked and compared before each load. */
  readonly checks: readonly Check[];
  /**
   * Queries as lines of name and type.
   * @param count the smallest number of queries, in a workload where no query may come twice in one phase
   */
  queries(phase: Phase, count: number): Iterable<string>;
}

/** Another server under the same workload, or Portolan under another workload. */
export type Beside = { readonly server: string } | { readonly workload: string };

/** How the load comes: dnsperf's many sockets, a few connections full of queries, or a connection for each. */
export type LoadShape =
  | "udp"
  | "tcp-pipelined"
  | "tcp-one-query"
  | "tls-pipelined"
  | "tls-one-query"
  | "https"
  | "quic";

/** The scheme that a load needs a further listener for. */
export function encryptionOf(load: LoadShape): "tls" | "https" | "quic" | undefined {
  if (load === "quic") return "quic";
  if (load === "https") return "https";
  return load.startsWith("tls-") ? "tls" : undefined;
}

/** `fill` is asked once, in order, before everything else. */
export type Phase = "fill" | "warm-up" | "capacity" | "open-loop";

export interface Check {
  readonly name: string;
  readonly type: RecordType;
  readonly rcode: "NOERROR" | "NXDOMAIN";
  /** Addresses of the answer; none for NXDOMAIN. */
  readonly addresses: readonly string[];
}

export type Queries = Pick<
  Workload,
  "cacheEntries" | "usesUpstream" | "needsNewNames" | "rcodes" | "checks" | "queries"
>;
