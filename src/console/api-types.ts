/** What the console's API answers, as its page and the command line read it. `api-schema.ts` says the same as a JSON schema. */

/** One finished query. */
export interface QueryRow {
  /** Milliseconds of the Unix epoch at which it arrived. */
  readonly time: number;
  readonly name: string;
  readonly type: string;
  /** `-` where the client got no reply. */
  readonly rcode: string;
  readonly client: string;
  /** `namespace/name` of the pod, or of the service that the client is an endpoint of; absent where neither is known. */
  readonly workload?: string;
  /** Milliseconds from arrival to answer. */
  readonly duration: number;
  /** The plugin that answered; empty where none did. */
  readonly plugin: string;
  readonly transport: string;
  /** The client's. */
  readonly port: number;
  /** Of the message: a client that asks once more because no reply came repeats it with the port. */
  readonly id: number;
  readonly listener: string;
  readonly answers: number;
  /** Seconds, of the first record. */
  readonly ttl?: number;
  /** Octets. */
  readonly size: number;
  /** How many queries the row stands for, while only some are written. */
  readonly weight: number;
  /** It was given up because too many waited. */
  readonly shed?: true;
}

export interface HistoryPoint {
  /** Milliseconds of the Unix epoch at which the interval began. */
  readonly time: number;
  readonly queries: number;
  readonly nxdomain: number;
  /** SERVFAIL, REFUSED and whatever else is neither an answer nor a denial. */
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
  /** Milliseconds since the start; `null` without exchanges. */
  readonly mean: number | null;
  readonly p99: number | null;
  readonly failedChecks: number;
  /** Messages from its address that answer nothing: an id that nobody waits for, another question. */
  readonly discarded: number;
}

export interface NowView {
  /** Milliseconds of the Unix epoch. */
  readonly time: number;
  readonly version: string;
  readonly hostname: string;
  readonly startedAt: number;
  readonly threads: number;
  /** Queries a second, over the last seconds. */
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
    /** Of the cgroup; `null` where there is none. */
    readonly limit: number | null;
  };
  /** Milliseconds of the last minute. */
  readonly pauses: { readonly p99: number; readonly longest: number };
  readonly shed: number;
  /** One of so many queries is looked at, and how many were overwritten before they were. */
  readonly sampling: { readonly interval: number; readonly missed: number };
  /** Seconds of a point, and the points of the last hour, oldest first. */
  readonly history: { readonly step: number; readonly points: readonly HistoryPoint[] };
}

export interface ClusterRow {
  readonly domain: string;
  /** What is still to be listed. */
  readonly awaited: readonly string[];
  readonly services: number;
  /** `IPv4`, `IPv6`: what its Services and their endpoints have addresses of. */
  readonly families: readonly string[];
  /** Milliseconds since the cluster was last heard of, of the kind that is oldest; `null` before the first time. */
  readonly age: number | null;
  readonly state: readonly string[];
}

/** What the kernel counts; `null` where the system does not tell. */
export interface MachineView {
  /** Queries that have finished since a console began to listen, in the configuration before as well. */
  readonly finished: number;
  readonly memory: {
    /** Octets: now, at its highest since the start, and what the cgroup may take. */
    readonly resident: number | null;
    readonly peak: number | null;
    readonly limit: number | null;
  };
  /** Datagrams of the network namespace since it is there. */
  readonly udp: {
    readonly received: number;
    readonly receiveBufferErrors: number;
    readonly sendBufferErrors: number;
    /** Of those, what the sockets lost that the server listens on. */
    readonly socketDrops: number;
  } | null;
  /** Connections that the network namespace tracks, and those that it could not. */
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
  /** As many at least: what was counted. */
  readonly queries: number;
  /** As many more there may have been before they were counted; never more than `queries`. */
  readonly more: number;
  readonly nxdomain: number;
  readonly servfail: number;
  /** Of a client its names, of a name its clients; the most frequent first. */
  readonly of: readonly { readonly key: string; readonly workload?: string; readonly queries: number }[];
}

export interface WhoView {
  /** Queries that the rows were counted among. */
  readonly queries: number;
  readonly clients: readonly TopRow[];
  readonly names: readonly TopRow[];
  /** By namespace of the client, where that is known. */
  readonly namespaces: readonly TopRow[];
  /** Queries that the rows do not tell of: those of clients and names that are too rare to be counted each. */
  readonly others: { readonly clients: number; readonly names: number; readonly namespaces: number };
}

export interface NamesView {
  readonly clusters: readonly {
    readonly domain: string;
    readonly namespaces: readonly { readonly name: string; readonly services: number }[];
  }[];
  /** Of the namespace that was asked for, or those whose name holds what was asked for; of all of them otherwise, then without endpoints. */
  readonly services: readonly ServiceRow[];
  /** There are more than are shown. */
  readonly more: boolean;
}

export interface ServiceRow {
  readonly domain: string;
  readonly namespace: string;
  readonly name: string;
  /** `clusterIP`, `headless`, `externalName`, or `missing` where only endpoints name it. */
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
  /** There are more than are shown. */
  readonly more: boolean;
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
  /** Names or addresses in the Corefile that replicas are looked for under. */
  readonly sources: readonly string[];
  readonly replicas: readonly ReplicaRow[];
}

/** What the fleet shows of a replica: parts of {@link NowView}. */
export interface ReplicaNow
  extends Pick<NowView, "time" | "version" | "hostname" | "startedAt" | "threads" | "rate"> {
  readonly minute: Pick<NowView["minute"], "queries" | "hitRatio" | "p50" | "p99">;
  readonly memory: Pick<NowView["memory"], "resident" | "limit">;
}

/** What a replica says of itself to the others. */
export interface ReplicaView {
  readonly now: ReplicaNow;
  readonly sha512: string;
}

export interface ReplicaRow {
  /** `10.1.0.7:8053`. */
  readonly address: string;
  /** What it says of itself; `null` for one that is away, or has not answered yet. */
  readonly now: ReplicaNow | null;
  readonly sha512: string;
  /** Why it is away. */
  readonly problem: string;
  /** It was asked, and its time is not up yet. */
  readonly awaited: boolean;
}

/** What can be set while the server runs. */
export interface SettingsView {
  /** The least urgent level that the process log has. */
  readonly level: string;
  readonly levels: readonly string[];
  /** How many server blocks have `trace`. */
  readonly tracers: number;
  /** Whose queries are all traced, and until when; `null` without such a rule. */
  readonly traced: { readonly client: string; readonly until: number } | null;
}

export interface SessionView {
  /** Whether reading needs a token as well. */
  readonly readNeedsToken: boolean;
  /** Whether actions are possible at all: a token is set. */
  readonly hasToken: boolean;
  readonly signedIn: boolean;
  /** To be sent as the header `portolan-csrf` with each action. Empty without a session. */
  readonly csrf: string;
}

/** What the document of the page has in it. */
export interface FirstView {
  readonly session: SessionView;
  readonly now: NowView;
}
