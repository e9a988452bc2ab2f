/**
 * What became of a query. A plugin answers (`Reply`), answers with many messages (`ReplyStream`), says that it failed (`Failure`: no
 * reply exists yet, the server or a plugin nearer to the client makes one), or drops the query without a word (`DROPPED`).
 */
import { Rcode } from "../../dns/numbers.ts";
import type { Reply } from "./reply.ts";

export type Outcome = Reply | ReplyStream | Failure | Dropped;

export class Failure {
  readonly kind = "failed";
  readonly rcode: number;
  /** Why, for the log. */
  readonly error: Error | undefined;
  /** Name of the plugin that failed; the chain fills it in. */
  plugin: string | undefined = undefined;

  constructor(rcode: number, error?: Error) {
    this.rcode = rcode;
    this.error = error;
  }
}

/** No plugin behind the last one: the chain ends, and nobody has answered. */
export class NoNextPluginError extends Error {
  override readonly name = "NoNextPluginError";

  /** @param plugin name of the last plugin */
  constructor(plugin: string) {
    super(`plugin/${plugin}: no next plugin found`);
  }
}

/**
 * An answer of several messages on one connection: a zone transfer (RFC 5936 section 2.2, RFC 1995 section 4). The server takes a part
 * when the client has room for it, so a slow client holds up nobody, and a zone is never in memory as a whole.
 *
 * Where there is room for one message alone (UDP), the first is sent, with TC if there are more.
 */
export class ReplyStream {
  readonly kind = "stream";
  /** Replies to the query, each as large as a message may be. The server ends it early when the client goes. */
  readonly parts: Iterator<Reply> | AsyncIterator<Reply>;
  /** What the first message says, for logs and metrics. */
  readonly rcode: number;
  /** Name of the plugin that answered; the chain fills it in. */
  plugin: string | undefined = undefined;
  /** Octets of the messages sent so far. */
  sentOctets = 0;
  /** Flags of the message sent last. */
  flags = 0;
  #listeners: (() => void)[] | undefined;

  constructor(parts: Iterator<Reply> | AsyncIterator<Reply>, rcode: number = Rcode.NOERROR) {
    this.parts = parts;
    this.rcode = rcode;
  }

  /**
   * Calls back once nothing more will be sent: all of it has been, the client has gone, or a message could not be made. Who puts a
   * stream of its own in place of this one tells it by {@link end}.
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

export interface Dropped {
  readonly kind: "dropped";
}

/** Nothing is sent. */
export const DROPPED: Dropped = Object.freeze({ kind: "dropped" });
