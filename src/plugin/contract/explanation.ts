/** The way of one query as plain values: what `explain` prints, what its endpoint answers, and what is asked of it. */

/** A question to be explained, with everything about its client that plugins may look at. */
export interface ExplainQuestion {
  /** With final dot. */
  readonly name: string;
  /** Record type by number. */
  readonly type: number;
  /** By number; IN unless given. */
  readonly class?: number;
  /** IP address of the client; loopback unless given. */
  readonly client?: string;
  readonly transport?: "udp" | "tcp";
  /** Which listener is asked (`dns://:53`); the first that has a block for the name unless given. */
  readonly listener?: string;
  readonly flags?: readonly QueryFlag[];
}

/** Flags that a client sets: `rd` is set unless flags are given. `do` is the one of EDNS. */
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
  /** The running server that was asked; `undefined` when the configuration was made for the question alone. */
  readonly server: ExplainedServer | undefined;
  /** `dns://:53`. */
  readonly listener: string;
  /** Keys and place of the server block; `undefined` when none takes the question. */
  readonly block: string | undefined;
  /** The name of the view that took the query; `undefined` without one. */
  readonly view: string | undefined;
  readonly steps: readonly Step[];
  /** `undefined` when nothing is sent. */
  readonly message: ExplainedMessage | undefined;
  /** The plugin that answered or failed. */
  readonly plugin: string | undefined;
  /** Why it failed. */
  readonly error: string | undefined;
  readonly milliseconds: number;
}

export interface ExplainedServer {
  /** `Portolan-0.1.0`. */
  readonly version: string;
  /** Threads that answer, each with its own connections, and one cache; the first one was asked. */
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
  /** Whether there is a record of the type asked. */
  readonly hasAnswer: boolean;
}

/** One plugin, or a lookup that a plugin made through the server. */
export interface Step {
  /** How many lookups led here. */
  readonly depth: number;
  readonly plugin: string;
  /** What it did, in words. */
  readonly decision: string;
  /** Name and type that it was asked for, where a plugin in front of it had changed the question. */
  readonly asked?: string;
  readonly notes: readonly { readonly text: string; readonly facts?: Readonly<Record<string, unknown>> }[];
  /** Spent in the plugin itself; `undefined` when that is not known. */
  readonly milliseconds: number | undefined;
}

/** A question that cannot be put to a server; the message says why and what to do. */
export class ExplainError extends Error {
  override readonly name = "ExplainError";
}
