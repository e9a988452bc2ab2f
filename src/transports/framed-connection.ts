/**
 * DNS on a byte stream (RFC 7766, RFC 7858): messages after two octets of length, pipelined, answered in any order. Limits the
 * queries in flight of a client, the replies that it leaves unread, and the incomplete messages.
 */
import type { Socket } from "node:net";
import { octetAt, readU16, writeU16 } from "../dns/octets.ts";
import type { BufferPool, PooledBuffer } from "../lib/collections/buffer-pool.ts";
import type { Clock, Timer } from "../lib/time/clock.ts";
import type { SharedTurns } from "../lib/time/turn-share.ts";
import type { Endpoint } from "../plugin/message/endpoint.ts";
import type { ByteStream, StreamUser } from "./byte-stream-server.ts";
import {
  type ConnectionAccount,
  type ConnectionBudget,
  REPLY_OBJECTS_OCTETS,
  UNNOTICED,
} from "./connection-budget.ts";
import { FramedReplyPort, LENGTH_OCTETS, type ReplyConnection } from "./framed-reply-port.ts";
import type { MessageReceiver } from "./transport.ts";

/** Read for each connection and message, so that a reload also applies to open sockets. */
export interface StreamLimits {
  /** Milliseconds until the first message must be whole. */
  readonly readTimeout: number;
  /** Milliseconds until each further message must be whole. */
  readonly idleTimeout: number;
  /** Messages on one connection, -1 for no limit. */
  readonly maxQueries: number;
}

export interface FramedOptions {
  readonly clock: Clock;
  readonly budget: ConnectionBudget;
  readonly receiver: MessageReceiver;
  /** The time that all connections of a listener may use in a turn of the event loop. */
  readonly turns: SharedTurns;
  limits(): StreamLimits;
}

/** Queries in flight of one connection before the server stops reading from it. */
const MAX_IN_FLIGHT = 256;
/**
 * Messages processed from a connection at a time, once or twice a turn: a chunk may hold thousands, and other connections need
 * their turn.
 */
const MESSAGES_A_TURN = 128;
/** The same while other connections wait: with many busy clients, a single question must still be answered soon. */
const MESSAGES_AMONG_OTHERS = 16;
/**
 * Messages between two looks at the clock, at most. Uncompiled code is slow, so the first look precedes the first message and the
 * second follows it.
 */
const MESSAGES_A_LOOK = 4;
/** Octets of replies gathered for one write, which is one system call, and one or a few TLS records. */
const MAX_GATHERED = 32 * 1024;
/** Octets of an incomplete message that every connection may have: most queries are shorter. */
const LITTLE = 512;
/** The rest of a chunk is copied if it is smaller than this fraction of the chunk. */
const SMALL_PART = 4;

export class FramedConnection implements StreamUser, ReplyConnection {
  readonly client: Endpoint;
  readonly local: Endpoint;
  readonly #socket: Socket;
  readonly #options: FramedOptions;
  readonly #account: ConnectionAccount;
  #pending: Buffer = EMPTY;
  #inFlight = 0;
  #received = 0;
  /** Further data is ignored. */
  #noMoreReads = false;
  /** The client has closed its side. */
  #hasEnded = false;
  /** Received messages are processed in the next turn. Until then nothing more is read. */
  #takesLater = false;
  /** Octets of unread replies, as reported to the budget. */
  #unsent = 0;
  /** Replies written since the input was last empty. */
  #replies = 0;
  /** Over TLS, waiting data exists twice: as written, and encrypted. */
  readonly #copies: 1 | 2;
  /** The socket will report the end of the current writes. */
  #awaitsWritten = false;
  /** More was written before that report. */
  #isBehind = false;
  /** The client was behind at the last deadline, and has read nothing since. */
  #isStuck = false;
  #timer: Timer | undefined;
  /** Deadline of the next whole message, and the time of the next check. */
  #due = 0;
  #timerEnds = 0;
  /** For immediate answers; later answers have a port of their own. */
  readonly #port: FramedReplyPort = new FramedReplyPort(this);
  /** Messages are being processed: their replies are written together. */
  #isTaking = false;
  /** Octets of replies that wait for the rest of their batch. */
  #gathered = 0;
  readonly #sendGathered = (): void => {
    if (this.#gathered === 0) return;
    this.#gathered = 0;
    this.#socket.uncork();
    this.#noteUnsent();
  };
  readonly #onWritten = (): void => {
    this.#awaitsWritten = false;
    this.#isBehind = false;
    this.#noteUnsent();
    if (!this.#isTaking) this.#resume();
  };
  /** Resolved when the client has read enough. */
  #drained: PromiseWithResolvers<void> | undefined;

  constructor({ socket, client, local }: ByteStream, options: FramedOptions, account: ConnectionAccount) {
    this.#socket = socket;
    this.#options = options;
    this.#account = account;
    this.#copies = "encrypted" in socket ? 2 : 1;
    this.client = client;
    this.local = local;
    socket.on("data", (data) => this.#onData(data));
    socket.on("end", () => {
      this.#hasEnded = true;
      this.#takeMessages();
    });
    socket.on("drain", () => {
      this.#isStuck = false;
      this.#noteUnsent();
      this.#settleDrained();
      this.#resume();
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      this.#timer?.cancel();
      this.#pending = EMPTY;
      this.#noteUnsent();
      this.#settleDrained();
    });
    this.#expectMessage(options.limits().readTimeout);
  }

  get awaitsAnswers(): boolean {
    return this.#inFlight > 0;
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed;
  }

  stopReading(): void {
    this.#noMoreReads = true;
    this.#socket.pause();
    this.#finishIfDone();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Large replies are written into these. */
  get buffers(): BufferPool {
    return this.#options.budget.buffers;
  }

  /** `framed` begins with two octets of room for the length; it is `lent`, or the reply's own. */
  sendFramed(framed: Uint8Array, length: number, lent: PooledBuffer | undefined): void {
    this.#inFlight--;
    this.#write(framed, length, lent, true);
    if (this.#isTaking) return;
    this.#resume();
    this.#finishIfDone();
  }

  /** Like {@link sendFramed}, with more for the same query to follow. */
  sendPart(framed: Uint8Array, length: number, lent: PooledBuffer | undefined): boolean {
    this.#sendGathered();
    return this.#write(framed, length, lent, false);
  }

  drained(): Promise<void> {
    if (this.#socket.destroyed || this.#unsent === 0) return Promise.resolve();
    this.#drained ??= Promise.withResolvers<void>();
    return this.#drained.promise;
  }

  /** A query is settled without a message. */
  dropped(): void {
    this.#inFlight--;
    if (this.#isTaking) return;
    this.#resume();
    this.#finishIfDone();
  }

  /**
   * @param gathers whether it may wait for other replies of the same turn
   * @returns false if the client is behind with reading
   */
  #write(framed: Uint8Array, length: number, lent: PooledBuffer | undefined, gathers: boolean): boolean {
    if (this.#socket.destroyed) {
      lent?.takeBack();
      return false;
    }
    const octets = length + LENGTH_OCTETS;
    const waiting = this.#socket.writableLength - this.#gathered;
    // A reply to a client that reads nothing is dropped: it may ask again when it reads.
    if (waiting > 0 && waiting > this.#account.unsentLimit) {
      this.#account.giveUp();
      lent?.takeBack();
      return false;
    }
    writeU16(framed, 0, length);
    this.#replies++;
    if (gathers) this.#gather(octets);
    const flowing = this.#socket.write(framed.subarray(0, octets), lent?.written);
    if (!gathers) this.#noteUnsent();
    else if (!flowing || this.#gathered >= MAX_GATHERED) this.#sendGathered();
    return flowing && !this.#socket.destroyed;
  }

  #gather(octets: number): void {
    if (this.#gathered === 0) {
      this.#socket.cork();
      if (!this.#isTaking) process.nextTick(this.#sendGathered);
    }
    this.#gathered += octets;
  }

  #onData(data: Buffer): void {
    this.#account.notePassed(data.length);
    this.#pending = this.#pending.length === 0 ? data : Buffer.concat([this.#pending, data]);
    if (!this.#takesLater) this.#takeMessages();
    this.#note();
    // Many incomplete long messages are like many unread replies: the received data must not fill the memory.
    const { length } = this.#pending;
    if (length > LITTLE && !holdsMessage(this.#pending) && length > this.#account.unsentLimit) this.#hangUp();
  }

  #hangUp(): void {
    this.#account.giveUp();
    this.#pending = EMPTY;
    this.#note();
  }

  #takeMessages(): void {
    const limits = this.#options.limits();
    let at = 0;
    let taken = 0;
    let nextLook = 0;
    const most = this.#options.turns.isWaitedFor ? MESSAGES_AMONG_OTHERS : MESSAGES_A_TURN;
    const pending = this.#pending;
    this.#isTaking = true;
    const { turns } = this.#options;
    let isRefused = false;
    while (!this.#isBusy && taken < most && pending.length - at >= LENGTH_OCTETS) {
      if (taken === nextLook) {
        if (turns.isOver) break;
        nextLook += Math.min(taken + 1, MESSAGES_A_LOOK);
      }
      const length = readU16(pending, at);
      isRefused = !this.#account.takes(length);
      if (isRefused || pending.length - at - LENGTH_OCTETS < length) break;
      const message = pending.subarray(at + LENGTH_OCTETS, at + LENGTH_OCTETS + length);
      at += LENGTH_OCTETS + length;
      taken++;
      this.#received++;
      this.#inFlight++;
      if (limits.maxQueries >= 0 && this.#received >= limits.maxQueries) this.#noMoreReads = true;
      this.#options.receiver.receive(message, length, this.#port);
    }
    this.#isTaking = false;
    this.#sendGathered();
    if (isRefused) {
      this.#hangUp();
      return;
    }
    if (at > 0) {
      this.#expectMessage(limits.idleTimeout);
      this.#account.heardFrom();
    }
    // A small rest is copied, so that it does not keep a large chunk alive.
    const left = pending.subarray(at);
    this.#pending = left.length * SMALL_PART < left.buffer.byteLength ? Buffer.from(left) : left;
    if (this.#socket.destroyed) this.#pending = EMPTY;
    this.#note();
    if (this.#isBusy) this.#socket.pause();
    else this.#goOn();
    this.#finishIfDone();
  }

  #resume(): void {
    if (!this.#isBusy && this.#socket.isPaused()) this.#goOn();
  }

  /** Processes received messages before it reads more. */
  #goOn(): void {
    if (this.#takesLater) return;
    if (holdsMessage(this.#pending)) {
      this.#takesLater = true;
      this.#socket.pause();
      this.#options.turns.later(this.#takeLater);
    } else if (this.#socket.isPaused()) {
      this.#socket.resume();
    }
  }

  readonly #takeLater = (): void => {
    this.#takesLater = false;
    if (!this.#socket.destroyed) this.#takeMessages();
  };

  /** Whether reading and processing are suspended. */
  get #isBusy(): boolean {
    return (
      this.#noMoreReads || this.#inFlight >= MAX_IN_FLIGHT || this.#hasTooMuchUnsent || this.#socket.destroyed
    );
  }

  get #hasTooMuchUnsent(): boolean {
    return this.#unsent > this.#account.unsentLimit;
  }

  /** Everything written has been sent by now, or waits for the client to read. */
  #noteUnsent(): void {
    const waiting = this.#socket.writableLength - this.#gathered;
    if (waiting <= 0) this.#replies = 0;
    const octets = waiting * this.#copies + this.#replies * REPLY_OBJECTS_OCTETS;
    this.#unsent = waiting > 0 && octets > UNNOTICED ? octets : 0;
    if (this.#unsent > 0) {
      if (this.#hasTooMuchUnsent) this.#socket.pause();
      this.#isBehind ||= this.#awaitsWritten || this.#hasTooMuchUnsent;
      if (!this.#awaitsWritten && this.#socket.writable) {
        this.#awaitsWritten = true;
        // Appended after all writes, because a socket only reports the end of a write.
        this.#socket.write(EMPTY, this.#onWritten);
      }
    }
    this.#note();
  }

  #note(): void {
    const { byteLength } = this.#pending.buffer;
    const received = this.#pending.length > LITTLE ? Math.max(this.#pending.length, byteLength) : 0;
    this.#account.holds(this.#unsent + received, this.#isBehind);
  }

  #settleDrained(): void {
    this.#drained?.resolve();
    this.#drained = undefined;
  }

  /** One deadline for a whole message: sending it octet by octet gains no time. */
  #expectMessage(timeout: number): void {
    const now = this.#options.clock.turnTime();
    this.#due = now + timeout;
    // A timer per message would cost more than the message, so the running timer checks again when it fires.
    if (this.#timer === undefined || this.#due < this.#timerEnds) this.#startTimer(now, timeout);
  }

  #startTimer(now: number, delay: number): void {
    this.#timer?.cancel();
    this.#timerEnds = now + delay;
    this.#timer = this.#options.clock.after(delay, this.#onTimer);
  }

  readonly #onTimer = (): void => {
    this.#timer = undefined;
    // Timers run before sockets are read: after a pause of the process, data that arrived in time is processed first.
    if (!this.#isWithinTime()) setImmediate(this.#onOverdue);
  };

  /** Whether the client is still within its deadline, possibly extended. */
  #isWithinTime(): boolean {
    const now = this.#options.clock.now();
    const left = this.#due - now;
    if (left > 0 && this.#timer === undefined) this.#startTimer(now, left);
    return left > 0;
  }

  readonly #onOverdue = (): void => {
    if (this.#socket.destroyed || this.#isWithinTime()) return;
    // A client that waits for an answer is not idle, unless it reads nothing.
    if (this.#inFlight > 0 && !this.#isStuck) {
      this.#isStuck = this.#unsent > 0;
      this.#expectMessage(this.#options.limits().idleTimeout);
      return;
    }
    // TLS sends close_notify (RFC 8446 section 6.1), unless the client reads nothing anyway.
    if (this.#socket.writableLength === 0) {
      this.#socket.destroySoon();
      return;
    }
    this.#account.giveUp();
  };

  #finishIfDone(): void {
    if (this.#inFlight > 0) return;
    if (this.#noMoreReads || (this.#hasEnded && !holdsMessage(this.#pending))) this.#socket.end();
  }
}

const EMPTY = Buffer.allocUnsafeSlow(0);

function holdsMessage(pending: Buffer): boolean {
  return (
    pending.length >= LENGTH_OCTETS &&
    pending.length - LENGTH_OCTETS >= ((octetAt(pending, 0) << 8) | octetAt(pending, 1))
  );
}
