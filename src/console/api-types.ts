/**
 * The answers of the console's API, for its page and the command line. `api-schema.ts` describes the same types as a
 * JSON schema.
 */

/** One finished query. */
export interface QueryRow {
  /** Milliseconds of the Unix epoch at which it arrived. */
  readonly time: number;
  readonly name: string;
  readonly type: string;
  /** `-` if the client got no reply. */
  readonly rcode: string;
  readonly client: string;
  /** `namespace/name` of the client's pod, or of the service that it is an endpoint of; absent if unknown. */
  readonly workload?: string;
  /** Milliseconds from arrival to answer. */
  readonly duration: number;
  /** The plugin that answered; empty without an answer. */
  readonly plugin: string;
  readonly transport: string;
  /** The client's. */
  readonly port: number;
  /** The message id: a client that retries repeats it with the port. */
  readonly id: number;
  readonly listener: string;
  readonly answers: number;
  /** TTL of the first record, in seconds. */
  readonly ttl?: number;
  /** Octets. */
  readonly size: number;
  /** The number of queries that the row represents, if they are sampled. */
  readonly weight: number;
  /** Dropped because too many queries were pending. */
  readonly shed?: true;
}

export interface HistoryPoint {
  /** Milliseconds of the Unix epoch at which the interval began. */
  readonly time: number;
  readonly queries: number;
  readonly nxdomain: number;
  /** SERVFAIL, REFUSED and other rcodes that are neither answers nor denials. */
  readonly errors: number;
  readonly unanswered: number;
  /** Answered by a cache. */
  readonly hits: number;
  /** Milliseconds; `null` without queries. */
  readonly p50: number | null;
  readonly p99: number | null;
}

export interface UpstreamRow {
  readonly plugin: string;
  /** `10.0.0.1:53`. */
  readonly address: string;
  /** Exchanges since the start, and those that brought SERVFAIL, REFUSED or the like. */
  readonly exchanges: number;
  readonly errors: number;
  /** The errors by rcode; absent in captures of older versions. */
  readonly failures?: Readonly<Record<string, number>>;
  /** Milliseconds since the start; `null` without exchanges. */
  readonly mean: number | null;
  readonly p99: number | null;
  readonly failedChecks: number;
  /** Messages from its address that match no pending query: an unknown id, or another question. */
  readonly discarded: number;
}

export interface NowView {
  /** Milliseconds of the Unix epoch. */
  readonly time: number;
  readonly version: string;
  readonly hostname: string;
  readonly startedAt: number;
  readonly threads: number;
  /** Queries per second, over the last seconds. */
  readonly rate: number;
  /** Of the last minute. */
  readonly minute: {
    readonly queries: number;
    readonly rcodes: Readonly<Record<string, number>>;
    readonly types: Readonly<Record<string, number>>;
    /** 0 to 1; `null` without queries. */
    readonly hitRatio: number | null;
    /** Milliseconds; `null` without queries. */
    readonly p50: number | null;
    readonly p90: number | null;
    readonly p99: number | null;
  };
  readonly upstreams: readonly UpstreamRow[];
  readonly clusters: readonly ClusterRow[];
  readonly memory: {
    /** Octets. */
    readonly resident: number;
    readonly heap: number;
    /** Limit of the cgroup; `null` without a limit. */
    readonly limit: number | null;
  };
  /** Milliseconds of the last minute. */
  readonly pauses: { readonly p99: number; readonly longest: number };
  readonly shed: number;
  /** Names of the plugins that are not ready, as in `/ready`, each once. */
  readonly notReady: readonly string[];
  /** What the plugins cannot do at present. */
  readonly troubles: readonly TroubleRow[];
  /** Expired answers given by caches since the start. */
  readonly servedStale: number;
  /** One query in this many is sampled; `missed` were overwritten before they were read. */
  readonly sampling: { readonly interval: number; readonly missed: number };
  /** Seconds of a point, and the points of the last hour, oldest first. */
  readonly history: { readonly step: number; readonly points: readonly HistoryPoint[] };
}

/** A part of a plugin's work that fails at present. */
export interface TroubleRow {
  readonly plugin: string;
  /** Keys of its server block. */
  readonly block: string;
  /** An upstream, a zone, a resource of the cluster. */
  readonly subject: string;
  /** In the words of the log. */
  readonly reason: string;
}

export interface ClusterRow {
  readonly domain: string;
  /** The resources that are still to be listed. */
  readonly awaited: readonly string[];
  readonly services: number;
  /** `IPv4`, `IPv6`: the address families of its Services and their endpoints. */
  readonly families: readonly string[];
  /**
   * Milliseconds since the last message from the API about the resource with the oldest one; `null` before the first.
   */
  readonly age: number | null;
  readonly state: readonly string[];
}

/** Counters of the kernel; `null` if the system does not report them. */
export interface MachineView {
  /** Finished queries since a console first listened, earlier configurations included. */
  readonly finished: number;
  /** Of the server's pod; `null` outside of a pod. Absent in captures of older versions. */
  readonly namespace?: string | null;
  readonly memory: {
    /** Bytes: now, the peak since the start, and the limit of the cgroup. */
    readonly resident: number | null;
    readonly peak: number | null;
    readonly limit: number | null;
  };
  /** Time without a processor: the quota of the cgroup, and competition on the machine. */
  readonly cpu: {
    /** Periods of the quota, and those in which it was used up, since the creation of the cgroup; 0 without a quota. */
    readonly periods: number;
    readonly throttledPeriods: number;
    /** Milliseconds that its threads waited for the quota, in all. */
    readonly throttled: number;
    /** Percentage of the last minute in which a thread waited for a processor (PSI). */
    readonly pressure: number | null;
  } | null;
  /** Datagrams of the network namespace since its creation. */
  readonly udp: {
    readonly received: number;
    readonly receiveBufferErrors: number;
    readonly sendBufferErrors: number;
    /** Of these, the drops of the server's own sockets. */
    readonly socketDrops: number;
  } | null;
  /** Tracked connections of the network namespace, and failures to track. */
  readonly conntrack: {
    readonly entries: number | null;
    readonly most: number | null;
    readonly dropped: number;
    readonly droppedEarly: number;
    readonly notInserted: number;
  } | null;
}

export interface TopRow {
  readonly key: string;
  readonly workload?: string;
  /** A lower bound: the counted queries. */
  readonly queries: number;
  /** The error of the count: up to this many more; never more than `queries`. */
  readonly more: number;
  readonly nxdomain: number;
  readonly servfail: number;
  /** The names of a client, or the clients of a name; the most frequent first. */
  readonly of: readonly { readonly key: string; readonly workload?: string; readonly queries: number }[];
}

export interface WhoView {
  /** Queries that the rows were counted among. */
  readonly queries: number;
  readonly clients: readonly TopRow[];
  readonly names: readonly TopRow[];
  /** By namespace of the client, if known. */
  readonly namespaces: readonly TopRow[];
  /** Queries of clients and names that are too rare for a row. */
  readonly others: { readonly clients: number; readonly names: number; readonly namespaces: number };
}

export interface NamesView {
  readonly clusters: readonly {
    readonly domain: string;
    readonly namespaces: readonly { readonly name: string; readonly services: number }[];
  }[];
  /**
   * The services of the requested namespace, or those whose name contains the requested text; otherwise all, without
   * endpoints.
   */
  readonly services: readonly ServiceRow[];
  /** Whether there are more than are shown. */
  readonly more: boolean;
}

export interface ServiceRow {
  readonly domain: string;
  readonly namespace: string;
  readonly name: string;
  /** `clusterIP`, `headless`, `externalName`, or `missing` if only endpoints name it. */
  readonly type: string;
  /** `web.shop.svc.cluster.local.` */
  readonly fqdn: string;
  readonly addresses: readonly string[];
  readonly externalName: string;
  readonly ports: readonly string[];
  readonly ready: number;
  readonly notReady: number;
  readonly publishNotReady: boolean;
  readonly endpoints: readonly {
    readonly address: string;
    readonly label: string;
    readonly ready: boolean;
  }[];
}

export interface ConfigurationAnswer {
  readonly file: string;
  /** Secrets are masked. */
  readonly text: string;
  readonly sha512: string;
  readonly inForceSince: number;
  readonly diagnostics: readonly DiagnosticRow[];
  readonly refused: {
    readonly at: number;
    readonly reason: string;
    readonly diagnostics: readonly DiagnosticRow[];
  } | null;
  readonly blocks: readonly {
    readonly keys: readonly string[];
    readonly file: string;
    readonly line: number;
    readonly listeners: readonly string[];
    readonly chain: readonly { readonly name: string; readonly handles: boolean }[];
  }[];
}

export interface DiagnosticRow {
  readonly code: string;
  readonly severity: string;
  readonly message: string;
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export interface CacheAnswer {
  readonly caches: readonly {
    readonly zones: readonly string[];
    readonly entries: number;
    readonly octets: number;
    readonly maxOctets: number;
  }[];
  readonly answers: readonly CachedRow[];
  /** Whether there are more than are shown. */
  readonly more: boolean;
  /** Without a name: some of everything. */
  readonly overview?: {
    /** Answers that were looked at: all of them, if the caches hold no more. */
    readonly looked: number;
    /** The youngest first. */
    readonly newest: readonly CachedRow[];
    /** The largest first: names by their last two labels. */
    readonly zones: readonly { readonly zone: string; readonly answers: number }[];
  };
}

export interface CachedRow {
  readonly name: string;
  readonly type: string;
  readonly rcode: string;
  readonly ttl: number;
  readonly remaining: number;
  readonly age: number;
  readonly answers: number;
  readonly denial: boolean;
}

export interface FleetView {
  /** Names or addresses in the Corefile that lead to replicas. */
  readonly sources: readonly string[];
  readonly replicas: readonly ReplicaRow[];
}

/** The part of {@link NowView} that the fleet page shows of a replica. */
export interface ReplicaNow
  extends Pick<NowView, "time" | "version" | "hostname" | "startedAt" | "threads" | "rate"> {
  readonly minute: Pick<NowView["minute"], "queries" | "hitRatio" | "p50" | "p99">;
  readonly memory: Pick<NowView["memory"], "resident" | "limit">;
}

/** A replica's report to the others. */
export interface ReplicaView {
  readonly now: ReplicaNow;
  readonly sha512: string;
}

export interface ReplicaRow {
  /** `10.1.0.7:8053`. */
  readonly address: string;
  /** Its report; `null` while it is away or has not answered yet. */
  readonly now: ReplicaNow | null;
  readonly sha512: string;
  /** The reason why it is away. */
  readonly problem: string;
  /** Whether its answer is still awaited. */
  readonly awaited: boolean;
}

/** The settings that can be changed while the server runs. */
export interface SettingsView {
  /** The least urgent level that is logged. */
  readonly level: string;
  readonly levels: readonly string[];
  /** The number of server blocks with `trace`. */
  readonly tracers: number;
  /** The client whose queries are all traced, and the end of that; `null` without a rule. */
  readonly traced: { readonly client: string; readonly until: number } | null;
}

export interface SessionView {
  /** Whether reading needs a token as well. */
  readonly readNeedsToken: boolean;
  /** Whether actions are possible: a token is set. */
  readonly hasToken: boolean;
  readonly signedIn: boolean;
  /** The value of the header `portolan-csrf` for actions. Empty without a session. */
  readonly csrf: string;
}

/** The data in the page's document. */
export interface FirstView {
  readonly session: SessionView;
  readonly now: NowView;
}
