/**
 * The server as a plugin instance sees it. Everything outside the plugin comes through here, so that a test can
 * replace it.
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { ServerKey } from "../../corefile/server-key.ts";
import type { Name } from "../../dns/name.ts";
import type { IdentityHolder } from "../../lib/files/server-identity.ts";
import type { LevelSetting, Logger } from "../../lib/logging/log.ts";
import type { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { QueryStream } from "../stream/query-stream.ts";
import type { ChangingNames } from "./changing-names.ts";
import type { ClusterClients } from "./cluster-clients.ts";
import type { ExplainQuestion, Explanation } from "./explanation.ts";
import type { Greeting } from "./greeting.ts";
import type { PlacedPlugin } from "./plugin-instance.ts";
import type { ServerView } from "./server-view.ts";

/** The server around an instance: everything that a plugin needs from outside of it. */
export interface Site {
  /** Name of the plugin, as in the Corefile. */
  readonly plugin: string;
  /** The server block of the directive: its zones and its other plugins. */
  readonly block: BlockSite;
  /** The time, and timers. A test moves it. */
  readonly clock: Clock;
  /** Random numbers. A test knows them in advance. */
  readonly random: Random;
  /** Messages appear as `plugin/<name>: …`. */
  readonly log: Logger;
  /** The process log without prefix, for plugins with their own line format (`log`). */
  readonly processLog: Logger;
  /** Families live as long as the process and survive reloads: a second request returns the same one. */
  readonly metrics: MetricsRegistry;
  /** Serves paths over HTTP, such as `/health`. */
  readonly http: HttpService;
  /** Messages from this instance on the main thread to the same one on other threads (`multisocket`). */
  readonly feed: Feed;
  /** The server process: its configuration, reloads, and `explain`. */
  readonly control: ServerControl;
  /** Finished queries of this thread, including cache hits and queries that no block took. */
  readonly queries: QueryStream;
  /** Host name, addresses and limits of the machine. */
  readonly machine: Machine;
  /** Shared by all blocks of this configuration. */
  readonly changingNames: ChangingNames;
  /** The version of Portolan. */
  readonly version: string;
  /** Joins a relative path with the directory of `root`. */
  resolvePath(path: string): string;
  /**
   * One object for all blocks of this configuration, made at the first call. Keys belong to the plugin, each for one
   * type; a reload begins without objects.
   */
  shared<T>(key: string, make: () => T): T;
}

/**
 * The server block of the directive. Its members are complete once all instances are made: use them from `start` on.
 */
export interface BlockSite {
  /** The keys of the block, such as `tls://example.org:853`. */
  readonly keys: readonly ServerKey[];
  /** Zones of the keys, in order. */
  readonly zones: readonly Name[];
  /** What directives such as `bind` and `timeouts` set. */
  readonly settings: Readonly<BlockSettings>;
  /** Instances of the block in chain order. */
  plugins(): readonly PlacedPlugin[];
  /** Labels (`dns://:53`) of the listeners that the block is on. */
  listeners(): readonly ListenerSite[];
}

/** A listener as seen from a block. */
export interface ListenerSite {
  /** `dns://:53`. */
  readonly label: string;
  readonly zone: Name;
  /**
   * Address to reach it from this machine; the port is real even if the Corefile says 0. `undefined` before it
   * listens.
   */
  address(): { readonly host: string; readonly port: number } | undefined;
}

/** Options of a block that its configuration-only plugins set (docs/spec/coredns-behaviour.md#blocks). */
export interface BlockSettings {
  /** Addresses to listen on; empty for the wildcard (`bind`). */
  listenHosts: string[];
  /** True when `bind` excluded every address: the block has no listener. */
  listensNowhere: boolean;
  /** Directory for relative paths (`root`). */
  root: string;
  debug: boolean;
  stackTraces: boolean;
  /** Sockets for each address, each on a thread of its own (`multisocket`). */
  sockets: number;
  /** Milliseconds. */
  readTimeout: number;
  writeTimeout: number;
  idleTimeout: number;
  /** Queries on one TCP connection, -1 for no limit. */
  maxTcpQueries: number;
  /** Codes of EDNS options that are echoed to clients, besides those that every server echoes (`rewrite`). */
  echoedOptions: number[];
  /** Whether dynamic updates go to this block's plugins (`file`); elsewhere they are NOTIMP. */
  takesUpdates: boolean;
  /** Whether names that do not exist get compact denials (RFC 9824): clients that set CO see it in replies. */
  deniesCompactly: boolean;
  /** Reads the headers of proxies, on every transport of the block's listeners (`proxyproto`). */
  greeting: Greeting | undefined;
  /** The server's certificate for TLS clients; without it encrypted schemes are served in plain text (`tls`). */
  identity: IdentityHolder | undefined;
  /**
   * Connections of an `https://` listener, 0 for no own limit, and HTTP/2 streams on each, 0 for the default
   * (`https`).
   */
  maxHttpsConnections: number;
  maxHttpsStreams: number;
  /** Connections of a `grpc://` listener, 0 for no own limit, and streams on each (`grpc_server`). */
  maxGrpcConnections: number;
  maxGrpcStreams: number;
  /** Connections of a `quic://` listener, 0 for no own limit, streams of each, and pending queries of all (`quic`). */
  maxQuicConnections: number;
  maxQuicStreams: number;
  maxQuicQueries: number;
  /** Connections of an `https3://` listener, and streams on each, 0 for no own limit (`https3`). */
  maxHttps3Connections: number;
  maxHttps3Streams: number;
}

/** The default limits of a listener (docs/spec/coredns-behaviour.md#listeners). */
export function defaultBlockSettings(): BlockSettings {
  return {
    listenHosts: [],
    listensNowhere: false,
    root: "",
    debug: false,
    stackTraces: false,
    sockets: 1,
    readTimeout: 3_000,
    writeTimeout: 5_000,
    idleTimeout: 10_000,
    maxTcpQueries: -1,
    echoedOptions: [],
    takesUpdates: false,
    deniesCompactly: false,
    greeting: undefined,
    identity: undefined,
    maxHttpsConnections: 200,
    maxHttpsStreams: 0,
    maxGrpcConnections: 200,
    maxGrpcStreams: 256,
    maxQuicConnections: 200,
    maxQuicStreams: 256,
    maxQuicQueries: 1024,
    maxHttps3Connections: 200,
    maxHttps3Streams: 256,
  };
}

/** Random numbers for a plugin. */
export interface Random {
  /** Uniform in [0, 1): for shuffles, jitter and policies. */
  fraction(): number;
  /** Uniform over 32 bits from a cryptographic source: for ids and ports that must not be guessed. */
  unpredictable(): number;
}

/** Facts of the machine that the process runs on. */
export interface Machine {
  /** The name of the machine: in a pod, that of the pod. */
  readonly hostname: string;
  /** Addresses of an interface, link-local IPv6 ones with zone index; `undefined` if there is no such interface. */
  interfaceAddresses(name: string): readonly string[] | undefined;
  /** All addresses of this machine except loopback. */
  addresses(): readonly string[];
  /** The variables of the process. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The number of processors that this process may use. */
  readonly parallelism: number;
  /** Files and sockets that the process may have open, `Infinity` if the system sets no limit. */
  readonly descriptors: number;
  /** Memory that the process may have, in bytes; `undefined` without a limit. */
  readonly memoryLimit?: number | undefined;
  /** Version of the OpenSSL in Node. */
  readonly openssl?: string | undefined;
  /** Resident memory of the process in bytes. */
  residentOctets?(): number;
  /** Whether little of {@link memoryLimit} is left: caches must not grow then. */
  isMemoryTight?(): boolean;
}

/**
 * Messages from the data plane on the main thread (the leader) to those on other threads (the followers,
 * `multisocket`). Each plugin instance has a feed of its own, which leads to the same instance of the same
 * configuration in every follower. Without followers a message is dropped.
 *
 * Messages are copied by structured cloning: plain objects, arrays, maps and byte arrays arrive, functions and classes
 * do not. A view of a buffer takes the whole buffer with it.
 */
export interface Feed {
  readonly role: "leader" | "follower";
  /** Leader: sends a message to all followers, in order. */
  publish(message: unknown): void;
  /**
   * Leader: resolves once all followers act on the messages published so far. A follower that takes more than a
   * second is not waited for.
   */
  taken(): Promise<void>;
  /**
   * Leader: sets the source of snapshots. `snapshot` is called for each new follower, instead of everything published
   * before. The follower serves once it has received everything. Messages that are published while the snapshot is
   * read are sent after it, so the snapshot may include them already. Messages of the previous configuration have
   * reached the follower by that time.
   * @param snapshot yields the messages, and `undefined` wherever the event loop may have a turn
   */
  provide(snapshot: () => Iterable<unknown>): void;
  /**
   * Follower: sets the receiver of messages. Call it in `create` or `start`.
   * @param listener returns a promise if it acts on a message asynchronously; the promise must not reject
   */
  receive(listener: (message: unknown) => Promise<void> | void): void;
  /**
   * Follower: sends a question to the leader. Messages that the leader published before its answer have been sent to
   * all followers when the answer arrives. Rejects with the reason if the leader has no answer.
   */
  ask(question: unknown): Promise<unknown>;
  /** Leader: answers the followers' questions. Call it in `create` or `start`. */
  answer(listener: (question: unknown) => Promise<unknown>): void;
}

/** The feed of a server without followers. */
export const feedToNobody: Feed = {
  role: "leader",
  publish: () => undefined,
  taken: () => Promise.resolve(),
  provide: () => undefined,
  receive: () => undefined,
  ask: () => Promise.reject(new Error("this is the leader")),
  answer: () => undefined,
};

/** Answers one HTTP request. It may answer later; the server waits. */
export type HttpHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** One HTTP listener per address for all plugins and blocks; it stays open over a reload that needs it again. */
export interface HttpService {
  /**
   * Opens `address` (`:8080`, `localhost:9153`) if needed, and answers `path` once the new configuration is in force.
   * @param identity for HTTPS: it applies to everything served at the address
   * @throws ListenError if the address is not available
   */
  serve(
    address: string,
    path: string,
    handler: HttpHandler,
    identity?: IdentityHolder,
  ): Promise<HttpEndpoint>;
}

/** An address that is served over HTTP. */
export interface HttpEndpoint {
  /**
   * The address in use, with the real port even if the configuration says 0. `reachableHost` turns the host
   * into one to connect to.
   */
  readonly host: string;
  readonly port: number;
}

/**
 * An address of this machine at which a socket that listens on `host` can be reached. A wildcard socket takes both
 * families, and a container without IPv6 has no `::1`.
 */
export function reachableHost(host: string): string {
  return host === "" || host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
}

/** Requests of plugins to the process that runs them. Followers have only `fatal`, `sha512` and `log`. */
export interface ServerControl {
  /** Reads and parses the Corefile again, without putting it into force; rejects on an error. */
  readConfiguration(): Promise<{ readonly sha512: string }>;
  /**
   * The number of different Corefile contents that {@link readConfiguration} has rejected. Different contents may
   * have the same error.
   */
  readonly refusedContents?: () => number;
  /** SHA-512 of the configuration in force. */
  readonly sha512: string;
  /** Puts the current Corefile into force, or rejects and changes nothing. */
  reload(): Promise<void>;
  /**
   * The configuration in force, which may be newer than the plugin's; `undefined` before the first one, and when the
   * server stops.
   */
  readonly inForce?: () => { readonly sha512: string; hasPlugin(name: string): boolean } | undefined;
  /**
   * Registers work that outlives its configuration. @returns a function to call if that work ends before the server
   * does
   */
  readonly untilServerStops?: (end: () => void) => () => void;
  /** Ends the process with status 1 after logging the message. */
  fatal(message: string): void;
  /**
   * Sends a query to the configuration in force, as if from a client, and returns its path (`explain`).
   * @param timeout milliseconds after which the path so far is returned
   * @throws ExplainError for an unknown listener, or before the server listens
   */
  explain(question: ExplainQuestion, timeout: number): Promise<Explanation>;
  /** The clusters that the configuration in force serves, in the order of the Corefile. */
  clusters(): readonly ClusterClients[];
  /** The state of the server, for display; `undefined` without a server around the configuration. */
  readonly view?: ServerView;
  /** The level of this thread's process log, until the next reload sets that of the Corefile. */
  readonly log?: LevelSetting;
}
