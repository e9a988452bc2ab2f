/** The path of one query as plain values: the input and output of `explain` and its endpoint. */

/** A query to be explained, with everything about its client that plugins may read. */
export interface ExplainQuestion {
  /** With final dot. */
  readonly name: string;
  /** Record type by number. */
  readonly type: number;
  /** By number; IN unless given. */
  readonly class?: number;
  /** IP address of the client; a loopback address unless given. */
  readonly client?: string;
  readonly transport?: "udp" | "tcp";
  /** The listener (`dns://:53`); unless given, the one that a client would use: plain DNS first, then the longest zone. */
  readonly listener?: string;
  readonly flags?: readonly QueryFlag[];
}

/** Flags of the query: `rd` is set unless flags are given. `do` is in EDNS. */
export const QUERY_FLAGS = ["rd", "ad", "cd", "do"] as const;
export type QueryFlag = (typeof QUERY_FLAGS)[number];

export interface Explanation {
  readonly name: string;
  readonly type: string;
  readonly class: string;
  readonly client: string;
  readonly transport: "udp" | "tcp";
  /** Flags of the query. */
  readonly flags: readonly string[];
  /** The running server; `undefined` if the configuration was made for this query alone. */
  readonly server: ExplainedServer | undefined;
  /** `dns://:53`. */
  readonly listener: string;
  /** Further listeners with a server block for the name; absent without any. */
  readonly otherListeners?: readonly string[];
  /** Keys and place of the server block; `undefined` if no block takes the question. */
  readonly block: string | undefined;
  /** The view that took the query; `undefined` without one. */
  readonly view: string | undefined;
  readonly steps: readonly Step[];
  /** `undefined` when nothing is sent. */
  readonly message: ExplainedMessage | undefined;
  /** The plugin that answered or failed. */
  readonly plugin: string | undefined;
  /** The reason of the failure. */
  readonly error: string | undefined;
  readonly milliseconds: number;
}

export interface ExplainedServer {
  /** `Portolan-0.1.0`. */
  readonly version: string;
  /** Threads that answer, each with its own connections, and with one shared cache; this query went to the first. */
  readonly threads: number;
  /** SHA-512 of the configuration in force, in hex. */
  readonly configuration: string;
}

export interface ExplainedMessage {
  readonly rcode: string;
  /** Without `qr`. */
  readonly flags: readonly string[];
  readonly answer: readonly string[];
  readonly authority: readonly string[];
  /** Without OPT. */
  readonly additional: readonly string[];
  readonly edns: { readonly udpSize: number; readonly dnssecOk: boolean } | undefined;
  /** Octets on the wire. */
  readonly size: number;
  /** Whether there is a record of the queried type. */
  readonly hasAnswer: boolean;
}

/** One plugin, or a lookup that a plugin made through the server. */
export interface Step {
  /** The nesting of internal lookups. */
  readonly depth: number;
  readonly plugin: string;
  /** The plugin's action, in words. */
  readonly decision: string;
  /** The question's name and type, if a plugin in front had changed them. */
  readonly asked?: string;
  readonly notes: readonly { readonly text: string; readonly facts?: Readonly<Record<string, unknown>> }[];
  /** Milliseconds in the plugin itself; `undefined` if unknown. */
  readonly milliseconds: number | undefined;
}

/** A query that cannot be sent to the server; the message has the reason and the remedy. */
export class ExplainError extends Error {
  override readonly name = "ExplainError";
}
