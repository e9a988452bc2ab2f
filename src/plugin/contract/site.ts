/**
 * What the server gives to a plugin when it makes an instance. Everything outside of the plugin comes in here, so that a
 * test can hold it.
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

export interface Site {
  /** Name of the plugin, as in the Corefile. */
  readonly plugin: string;
  readonly block: BlockSite;
  readonly clock: Clock;
  readonly random: Random;
  /** Messages appear as `plugin/<name>: …`. */
  readonly log: Logger;
  /** The process log without prefix, for plugins whose lines are a format of their own (`log`). */
  readonly processLog: Logger;
  /** Families live as long as the process and survive reloads: asking again gives the same one. */
  readonly metrics: MetricsRegistry;
  readonly http: HttpService;
  readonly feed: Feed;
  readonly control: ServerControl;
  /** Finished queries of this thread: cache hits, and those that no block took, are among them. */
  readonly queries: QueryStream;
  readonly machine: Machine;
  /** One for all blocks of this configuration. */
  readonly changingNames: ChangingNames;
  readonly version: string;
  /** Joins a relative path with the directory of `root`. */
  resolvePath(path: string): string;
  /**
   * One object for all blocks of this configuration, made when the first of them asks. Keys are the plugin's own, each for one
   * type; a reload begins with none.
   */
  shared<T>(key: string, make: () => T): T;
}

/** The server block that holds the directive. Its members are complete once all instances are made: use them from `start` on. */
export interface BlockSite {
  readonly keys: readonly ServerKey[];
  /** Zones of the keys, in order. */
  readonly zones: readonly Name[];
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
  /** Address to reach it from this machine; the port is real even where port 0 was asked for. `undefined` before it listens. */
  address(): { readonly host: string; readonly port: number } | undefined;
}

/** What configuration-only plugins set for the block they stand in (docs/spec/coredns-behaviour.md#blocks). */
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
  /** Codes of EDNS options that clients get back, besides those that every server sends back (`rewrite`). */
  echoedOptions: number[];
  /** Dynamic updates go to this block's plugins (`file`); elsewhere they are NOTIMP. */
  takesUpdates: boolean;
  /** Names that do not exist are denied as RFC 9824 has it: clients that set CO see it in replies. */
  deniesCompactly: boolean;
  /** What proxies say in front of messages, on every transport of the block's listeners (`proxyproto`). */
  greeting: Greeting | undefined;
  /** Who the server is towards TLS clients; without it what would be encrypted is plain (`tls`). */
  identity: IdentityHolder | undefined;
  /** Connections of an `https://` listener, 0 for no limit of its own, and HTTP/2 streams on each, 0 for the default (`https`). */
  maxHttpsConnections: number;
  maxHttpsStreams: number;
  /** Connections of a `grpc://` listener, 0 for no limit of its own, and streams on each (`grpc_server`). */
  maxGrpcConnections: number;
  maxGrpcStreams: number;
  /** Connections of a `quic://` listener, 0 for no limit of its own, streams of each, and queries of all that wait for their answers (`quic`). */
  maxQuicConnections: number;
  maxQuicStreams: number;
  maxQuicQueries: number;
  /** Connections of an `https3://` listener, and streams on each, 0 for no limit of their own (`https3`). */
  maxHttps3Connections: number;
  maxHttps3Streams: number;
}

/** Limits of a listener when nobody says otherwise (docs/spec/coredns-behaviour.md#listeners). */
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

export interface Random {
  /** Uniform in [0, 1): for shuffles, jitter and policies. */
  fraction(): number;
  /** Uniform over 32 bits from a cryptographic source: for ids and ports that must not be guessed. */
  unpredictable(): number;
}

export interface Machine {
  readonly hostname: string;
  /** Addresses of an interface, link-local IPv6 ones with zone index; `undefined` for a name that is no interface. */
  interfaceAddresses(name: string): readonly string[] | undefined;
  /** All addresses of this machine but loopback. */
  addresses(): readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** How many threads the machine can run at one time: the processors that this process may use. */
  readonly parallelism: number;
  /** Files and sockets that the process may have open at one time, `Infinity` where the system does not say. */
  readonly descriptors: number;
  /** Octets of memory that the process may have; `undefined` where nobody set a limit. */
  readonly memoryLimit?: number | undefined;
  /** Version of the OpenSSL that Node carries. */
  readonly openssl?: string | undefined;
  /** Octets of memory that the process has now. */
  residentOctets?(): number;
  /** Whether little of {@link memoryLimit} is left: who keeps something that can be spared is to take no more then. */
  isMemoryTight?(): boolean;
}

/**
 * What the data plane on the main thread (the leader) tells those on other threads (the followers, `multisocket`). Each instance of a
 * plugin has a feed of its own, which leads to the same instance of the same configuration in every follower. Without followers
 * a message goes nowhere and costs a call.
 *
 * Messages are copied by structured cloning: plain objects, arrays, maps and octets arrive, functions and classes do not. An array of
 * octets takes the whole buffer that it is a part of along.
 */
export interface Feed {
  readonly role: "leader" | "follower";
  /** Leader: sends a message to all followers, in order. */
  publish(message: unknown): void;
  /** Leader: resolves once all followers act on what was published before. One that does not within a second is not waited for. */
  taken(): Promise<void>;
  /**
   * Leader: has `snapshot` called for each follower that is new, in place of all that was published before. The follower serves once it
   * has received everything. What is published while the snapshot is being read is sent behind it, so the snapshot may show it already.
   * What this end published in the configuration before has reached the follower by then.
   * @param snapshot gives the messages, and `undefined` wherever the event loop is to have a turn before it goes on
   */
  provide(snapshot: () => Iterable<unknown>): void;
  /**
   * Follower: takes the messages. To be called in `create` or `start`.
   * @param listener gives a promise where it acts on a message only when that resolves; it must not reject
   */
  receive(listener: (message: unknown) => Promise<void> | void): void;
  /**
   * Follower: puts a question to the leader. What the leader published before it answered has been sent to all followers by then.
   * Rejects with the reason where the leader has no answer.
   */
  ask(question: unknown): Promise<unknown>;
  /** Leader: answers what followers ask. To be called in `create` or `start`. */
  answer(listener: (question: unknown) => Promise<unknown>): void;
}

/** The feed of a server that has no followers. */
export const feedToNobody: Feed = {
  role: "leader",
  publish: () => undefined,
  taken: () => Promise.resolve(),
  provide: () => undefined,
  receive: () => undefined,
  ask: () => Promise.reject(new Error("this is the leader")),
  answer: () => undefined,
};

export type HttpHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** One HTTP listener an address for all plugins and blocks; it stays open over a reload that wants it again. */
export interface HttpService {
  /**
   * Opens `address` (`:8080`, `localhost:9153`) if need be, and answers `path` once the new configuration is in force.
   * @param identity for HTTPS: all that is served at the address is, then
   * @throws ListenError when the address cannot be had
   */
  serve(
    address: string,
    path: string,
    handler: HttpHandler,
    identity?: IdentityHolder,
  ): Promise<HttpEndpoint>;
}

export interface HttpEndpoint {
  /** The address in use, with the real port where port 0 was asked for. See {@link reachableHost} for how to get there. */
  readonly host: string;
  readonly port: number;
}

/**
 * Where a socket that listens on `host` can be reached from this machine. A wildcard socket takes both families, and a container
 * without IPv6 has no `::1`.
 */
export function reachableHost(host: string): string {
  return host === "" || host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
}

/** What plugins may ask of the process that runs them. In a follower only `fatal`, `sha512` and `log` are to be had. */
export interface ServerControl {
  /** Reads and parses the Corefile again without changing anything; rejects when it cannot be read or does not parse. */
  readConfiguration(): Promise<{ readonly sha512: string }>;
  /** How many different contents of the Corefile {@link readConfiguration} has rejected. Another content may have the same fault. */
  readonly refusedContents?: () => number;
  /** SHA-512 of the configuration in force. */
  readonly sha512: string;
  /** Puts the Corefile as it now is into force, or rejects and leaves everything as it was. */
  reload(): Promise<void>;
  /** What is in force by now, which may be a later configuration; `undefined` before the first one, and when the server stops. */
  readonly inForce?: () => { readonly sha512: string; hasPlugin(name: string): boolean } | undefined;
  /** For what goes on after its configuration has been replaced. @returns to be called where it ends before the server */
  readonly untilServerStops?: (end: () => void) => () => void;
  /** Ends the process with status 1 after logging the message. */
  fatal(message: string): void;
  /**
   * Puts a question to the configuration in force, as if a client had asked, and tells its way (`explain`).
   * @param timeout milliseconds after which it is told as far as it has come
   * @throws ExplainError for a listener that there is not, or before the server listens
   */
  explain(question: ExplainQuestion, timeout: number): Promise<Explanation>;
  /** The clusters that the configuration in force answers for, in the order of the Corefile. */
  clusters(): readonly ClusterClients[];
  /** What is in force, for who shows it; `undefined` where there is no server around the configuration. */
  readonly view?: ServerView;
  /** The level of this thread's process log, until the next reload says what the Corefile has. */
  readonly log?: LevelSetting;
}
