/**
 * One query over its own connection, with any number of replies: zone transfers (RFC 5936, RFC 1995). This is background work: one
 * promise per message, and only a few messages in memory.
 */
import type { Socket } from "node:net";
import { Flag } from "../../dns/numbers.ts";
import { readU16, writeU16 } from "../../dns/octets.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import type { UpstreamAddress } from "../config/address.ts";
import { SHORTEST_MESSAGE } from "../exchange/exchange.ts";
import { describeSystemError, ExchangeError, type ExchangeFault } from "../exchange/exchange-error.ts";
import { FrameReader } from "./frame-reader.ts";
import { PLAIN_TCP, type StreamDialler } from "./tcp-connection.ts";

/** Authenticates the messages of one exchange, such as TSIG (RFC 8945 section 5.3). One object per exchange. */
export interface MessageGuard {
  /** The query to send. */
  sign(query: Uint8Array): Uint8Array;
  /**
   * Called for every message in the order of arrival, with `index` from 0.
   * @returns the message without its authentication
   * @throws Error if the message is not authentic: the exchange fails with it
   */
  verify(message: Uint8Array, index: number): Uint8Array;
}

export interface MessageStreamOptions {
  readonly remote: UpstreamAddress;
  readonly sourceAddress?: string | undefined;
  readonly clock: Clock;
  /** Default: plain TCP. */
  readonly dialler?: StreamDialler;
  /** Milliseconds for the connection. */
  readonly connectTimeout: number;
  /** Milliseconds for each message while the caller waits for one. */
  readonly messageTimeout: number;
  readonly guard?: MessageGuard | undefined;
  /** Ends the exchange from outside: at a stop. */
  readonly signal?: AbortSignal | undefined;
}

/** Unread messages; at more than this the server has to wait. */
const MOST_UNREAD = 4;

/**
 * Sends the query and yields the replies, in their own octets. Id, QR and opcode match. The caller checks the question, which only
 * the first message must have, and detects the last message; leaving the loop closes the connection.
 *
 * @param query a whole message; its id is used as it is and should be unpredictable
 * @throws ExchangeError; the guard's errors; the signal's reason
 */
export async function* messagesFor(
  query: Uint8Array,
  options: MessageStreamOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  options.signal?.throwIfAborted();
  const stream = new MessageStream(options);
  try {
    await stream.opened();
    const { guard } = options;
    const id = readU16(query, 0);
    const opcode = readU16(query, 2) & OPCODE;
    stream.send(guard === undefined ? query : guard.sign(query));
    for (let index = 0; ; index++) {
      const message = await stream.next();
      const flags = message.length < SHORTEST_MESSAGE ? 0 : readU16(message, 2);
      if (readU16(message, 0) !== id || (flags & Flag.QR) === 0 || (flags & OPCODE) !== opcode)
        throw stream.error("malformed", `reply from ${options.remote.text}: not a reply to the query`);
      yield guard === undefined ? message : guard.verify(message, index);
    }
  } finally {
    stream.close();
  }
}

const OPCODE = 0x7800;

class MessageStream {
  readonly #options: MessageStreamOptions;
  readonly #dialler: StreamDialler;
  readonly #socket: Socket;
  readonly #unread: Uint8Array[] = [];
  #open = false;
  #fault: Error | undefined;
  /** Wakes the one waiting reader. */
  #wake: () => void = ignore;
  #timer: Timer | undefined;
  readonly #onAbort = (): void => this.#end(asError(this.#options.signal?.reason));

  constructor(options: MessageStreamOptions) {
    this.#options = options;
    this.#dialler = options.dialler ?? PLAIN_TCP;
    const { remote, sourceAddress, signal } = options;
    const reader = new FrameReader((message) => this.#received(message));
    this.#socket = this.#dialler.dial(remote, sourceAddress);
    this.#socket
      .on(this.#dialler.readyEvent, () => {
        this.#open = true;
        this.#wake();
      })
      .on("data", (chunk) => reader.push(chunk))
      .on("end", () => this.#end(this.error("broken", "EOF")))
      .on("close", () => this.#end(this.error("broken", "EOF")))
      .on("error", (cause) => this.#end(this.#describe(cause)));
    signal?.addEventListener("abort", this.#onAbort);
  }

  async opened(): Promise<void> {
    const { remote, connectTimeout } = this.#options;
    await this.#happens(
      () => this.#open,
      connectTimeout,
      () => this.error("connect", `dial tcp ${remote.text}: i/o timeout`),
    );
  }

  send(message: Uint8Array): void {
    const frame = Buffer.allocUnsafe(message.length + 2);
    frame.set(message, 2);
    writeU16(frame, 0, message.length);
    this.#socket.write(frame);
  }

  async next(): Promise<Uint8Array> {
    await this.#happens(
      () => this.#unread.length > 0,
      this.#options.messageTimeout,
      () => this.error("timeout", `read ${this.#way()}: i/o timeout`),
    );
    const message = this.#unread.shift();
    if (this.#unread.length < MOST_UNREAD) this.#socket.resume();
    return message ?? new Uint8Array(0);
  }

  close(): void {
    this.#fault ??= this.error("closed", "the exchange is over");
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
    this.#timer?.cancel();
    this.#socket.destroy();
  }

  error(fault: ExchangeFault, message: string, cause?: Error): ExchangeError {
    return new ExchangeError(fault, this.#dialler.protocol, this.#options.remote.text, message, { cause });
  }

  async #happens(condition: () => boolean, timeout: number, tooLate: () => Error): Promise<void> {
    if (condition()) return;
    this.#timer = this.#options.clock.after(timeout, () => this.#end(tooLate()));
    while (!condition()) {
      if (this.#fault !== undefined) throw this.#fault;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#timer.cancel();
  }

  #received(message: Uint8Array): void {
    this.#unread.push(message);
    if (this.#unread.length >= MOST_UNREAD) this.#socket.pause();
    this.#wake();
  }

  /** Messages that arrived before can still be read. */
  #end(error: Error): void {
    this.#fault ??= error;
    this.#timer?.cancel();
    this.#wake();
  }

  #describe(cause: Error): ExchangeError {
    const layer = this.#dialler.describe(cause);
    const reason = describeSystemError(cause);
    if (!this.#open) {
      const { text } = this.#options.remote;
      return this.error("connect", layer ?? `dial tcp ${text}: connect: ${reason}`, cause);
    }
    return this.error("broken", layer ?? `read ${this.#way()}: read: ${reason}`, cause);
  }

  #way(): string {
    const { localAddress = "", localPort = 0 } = this.#socket;
    const local = localAddress.includes(":") ? `[${localAddress}]` : localAddress;
    return `tcp ${local}:${localPort}->${this.#options.remote.text}`;
  }
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

function ignore(): void {
  // Nothing waits yet.
}
