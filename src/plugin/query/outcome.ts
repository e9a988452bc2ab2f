/**
 * The outcome of a query. A plugin answers (`Reply`), answers with many messages (`ReplyStream`), fails (`Failure`:
 * there is no reply yet; the server or a plugin nearer to the client makes one), or drops the query silently
 * (`DROPPED`).
 */
import { Rcode } from "../../dns/numbers.ts";
import type { Reply } from "./reply.ts";

/** The outcome of a query; `kind` tells which one it is. */
export type Outcome = Reply | ReplyStream | Failure | Dropped;

/** A query without a reply: the server answers with the rcode, unless a plugin nearer to the client does. */
export class Failure {
  /** Tells it from the other outcomes. */
  readonly kind = "failed";
  /** A number of `Rcode`, such as SERVFAIL. */
  readonly rcode: number;
  /** The reason, for the log. */
  readonly error: Error | undefined;
  /** Name of the plugin that failed; the chain fills it in. */
  plugin: string | undefined = undefined;

  constructor(rcode: number, error?: Error) {
    this.rcode = rcode;
    this.error = error;
  }
}

/** The chain ends without an answer. */
export class NoNextPluginError extends Error {
  override readonly name = "NoNextPluginError";

  /** @param plugin name of the last plugin */
  constructor(plugin: string) {
    super(`plugin/${plugin}: no next plugin found`);
  }
}

/**
 * An answer of several messages on one connection: a zone transfer (RFC 5936 section 2.2, RFC 1995 section 4). The
 * server pulls a part when the client has room for it, so a slow client blocks no other, and a zone is never in
 * memory as a whole.
 *
 * If only one message can be sent (UDP), it is the first one, with TC if there are more.
 */
export class ReplyStream {
  /** Tells it from the other outcomes. */
  readonly kind = "stream";
  /**
   * Replies to the query, each as large as a message may be. The server ends the iteration early when the client
   * disconnects.
   */
  readonly parts: Iterator<Reply> | AsyncIterator<Reply>;
  /** The rcode of the first message, for logs and metrics. */
  readonly rcode: number;
  /** Name of the plugin that answered; the chain fills it in. */
  plugin: string | undefined = undefined;
  /** Octets of the messages sent so far. */
  sentOctets = 0;
  /** Flags of the latest message. */
  flags = 0;
  #listeners: (() => void)[] | undefined;

  constructor(parts: Iterator<Reply> | AsyncIterator<Reply>, rcode: number = Rcode.NOERROR) {
    this.parts = parts;
    this.rcode = rcode;
  }

  /**
   * Calls back once nothing more will be sent: everything has been sent, the client has disconnected, or a message
   * could not be made. A plugin that replaces this stream must call {@link end} on the original.
   */
  whenEnded(listener: () => void): void {
    this.#listeners ??= [];
    this.#listeners.push(listener);
  }

  /** Called by the server; further calls do nothing. */
  end(): void {
    const listeners = this.#listeners ?? [];
    this.#listeners = undefined;
    for (const listener of listeners) listener();
  }
}

/** A query that gets no reply, see {@link DROPPED}. */
export interface Dropped {
  readonly kind: "dropped";
}

/** Nothing is sent. */
export const DROPPED: Dropped = Object.freeze({ kind: "dropped" });
