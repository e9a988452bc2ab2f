/**
 * DNS on a byte stream (RFC 7766, RFC 7858): messages behind two octets of length, pipelined, answered in whatever order the answers
 * come. A client can neither hold more queries under way than allowed, nor let replies pile up that it does not read, or messages that it does
 * not end.
 */
import type { Socket } from "node:net";
import { octetAt, readU16, writeU16 } from "../dns/octets.ts";
import { type BufferPool, LEAST_POOLED, type PooledBuffer } from "../lib/buffer-pool.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import type { SharedTurns } from "../lib/turn-share.ts";
import type { Endpoint } from "../plugin/endpoint.ts";
import type { ByteStream, StreamUser } from "./byte-stream-server.ts";
import type { ConnectionBudget } from "./connection-budget.ts";
import type { MessageReceiver, PartPort, ReplyPort } from "./transport.ts";

/** Read anew for each connection and message, so that a reload changes them for open sockets too. */
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
  /** What all connections of a listener may do in a turn of the event loop together. */
  readonly turns: SharedTurns;
  limits(): StreamLimits;
  /** Told of each connection that was closed because its client does not read its replies. */
  readonly onUnread?: (() => void) | undefined;
}

/** Queries of one connection that may be under way before it is read no further. */
const MAX_IN_FLIGHT = 256;
/** Messages taken from a connection at a time, which is once or twice a turn: a chunk may hold thousands, and others want their turn. */
const MESSAGES_A_TURN = 128;
/**
 * Messages between two looks at the clock, at most. While code is not compiled yet, each takes a millisecond: the first look is before the first one, the second behind it.
 */
const MESSAGES_A_LOOK = 4;
/** Octets of replies that are gathered for one write, which is one system call, and one record of TLS or few. */
const MAX_GATHERED = 32 * 1024;
const LENGTH_OCTETS = 2;
/** Octets of a message that is not whole that every connection may have: most queries are shorter. */
const LITTLE = 512;

export class FramedConnection implements StreamUser {
  readonly client: Endpoint;
  readonly local: Endpoint;
  readonly #socket: Socket;
  readonly #options: FramedOptions;
  readonly #heardFrom: () => void;
  #pending: Buffer = EMPTY;
  #inFlight = 0;
  #received = 0;
  /** What comes from now on is not taken. */
  #noMoreReads = false;
  /** The client has closed its side. */
  #hasEnded = false;
  /** Messages that have arrived are taken in the next turn. Until then nothing more is read. */
  #takesLater = false;
  /** Octets of replies that the client has left unread. */
  #unsent = 0;
  /** Octets that the budget knows of. */
  #noted = 0;
  /** The client was behind when the time was up last, and has taken nothing since. */
  #isStuck = false;
  #timer: Timer | undefined;
  /** When the next message has to be whole, and when the timer will look whether it is. */
  #due = 0;
  #timerEnds = 0;
  /** For answers at hand; those that come later have one of their own. */
  readonly #port: FramedReplyPort = new FramedReplyPort(this);
  /** Messages are being taken: their replies leave together. */
  #isTaking = false;
  /** Octets of replies that wait for the others of their batch. */
  #gathered = 0;
  readonly #sendGathered = (): void => {
    if (this.#gathered === 0) return;
    this.#gathered = 0;
    this.#socket.uncork();
  };
  /** Whoever waits for the client to read. */
  #drained: PromiseWithResolvers<void> | undefined;

  constructor({ socket, client, local }: ByteStream, options: FramedOptions, heardFrom: () => void) {
    this.#socket = socket;
    this.#options = options;
    this.#heardFrom = heardFrom;
    this.client = client;
    this.local = local;
    socket.on("data", (data) => this.#onData(data));
    socket.on("end", () => {
      this.#hasEnded = true;
      this.#takeMessages();
    });
    socket.on("drain", () => {
      this.#isStuck = false;
      this.#noteUnsent(0);
      this.#settleDrained();
      this.#resume();
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      this.#timer?.cancel();
      this.#pending = EMPTY;
      this.#noteUnsent(0);
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

  /** As {@link sendFramed}, with more for the same query to follow. */
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
   * @param gathers whether it may wait for others that leave in the same turn
   * @returns false where the client is behind with reading
   */
  #write(framed: Uint8Array, length: number, lent: PooledBuffer | undefined, gathers: boolean): boolean {
    if (this.#socket.destroyed) {
      lent?.takeBack();
      return false;
    }
    const { budget, onUnread } = this.#options;
    const octets = length + LENGTH_OCTETS;
    const waiting = this.#socket.writableLength - this.#gathered;
    // A reply to a client that takes none is not kept for it: it may ask again when it reads.
    if (waiting > 0 && (waiting > budget.unsentLimit || !budget.hasRoomFor(octets))) {
      onUnread?.();
      this.#socket.destroy();
      lent?.takeBack();
      return false;
    }
    writeU16(framed, 0, length);
    if (gathers) this.#gather(octets);
    const flowing = this.#socket.write(framed.subarray(0, octets), lent?.written);
    if (!flowing || this.#gathered >= MAX_GATHERED) this.#sendGathered();
    this.#noteUnsent(flowing ? 0 : this.#socket.writableLength);
    if (this.#hasTooMuchUnsent) this.#socket.pause();
    return flowing;
  }

  #gather(octets: number): void {
    if (this.#gathered === 0) {
      this.#socket.cork();
      if (!this.#isTaking) process.nextTick(this.#sendGathered);
    }
    this.#gathered += octets;
  }

  #onData(data: Buffer): void {
    this.#options.budget.notePassed(data.length);
    this.#pending = this.#pending.length === 0 ? data : Buffer.concat([this.#pending, data]);
    if (!this.#takesLater) this.#takeMessages();
    this.#note();
    // Many that begin a long message and do not end it are as many that do not read: what they sent must not fill the memory.
    const { budget, onUnread } = this.#options;
    const { length } = this.#pending;
    if (length <= LITTLE || holdsMessage(this.#pending)) return;
    if (length <= budget.unsentLimit && budget.hasRoomFor(0)) return;
    onUnread?.();
    this.#hangUp();
  }

  #hangUp(): void {
    this.#socket.destroy();
    this.#pending = EMPTY;
    this.#note();
  }

  #takeMessages(): void {
    const limits = this.#options.limits();
    let at = 0;
    let taken = 0;
    let nextLook = 0;
    const pending = this.#pending;
    this.#isTaking = true;
    const { turns, budget, onUnread } = this.#options;
    let isRefused = false;
    while (!this.#isBusy && taken < MESSAGES_A_TURN && pending.length - at >= LENGTH_OCTETS) {
      if (taken === nextLook) {
        if (turns.isOver) break;
        nextLook += Math.min(taken + 1, MESSAGES_A_LOOK);
      }
      const length = readU16(pending, at);
      isRefused = !budget.takes(length);
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
      onUnread?.();
      this.#hangUp();
      return;
    }
    if (at > 0) {
      this.#expectMessage(limits.idleTimeout);
      this.#heardFrom();
    }
    // What is left is copied, so that a few octets do not hold on to a large chunk.
    this.#pending = at === 0 ? pending : Buffer.from(pending.subarray(at));
    this.#note();
    if (this.#isBusy) this.#socket.pause();
    else this.#goOn();
    this.#finishIfDone();
  }

  #resume(): void {
    if (!this.#isBusy && this.#socket.isPaused()) this.#goOn();
  }

  /** Takes what has arrived before it reads more. */
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

  /** Whether nothing more is taken from the client for now. */
  get #isBusy(): boolean {
    return this.#noMoreReads || this.#inFlight >= MAX_IN_FLIGHT || this.#hasTooMuchUnsent;
  }

  get #hasTooMuchUnsent(): boolean {
    return this.#unsent > 0 && this.#socket.writableLength > this.#options.budget.unsentLimit;
  }

  #noteUnsent(octets: number): void {
    this.#unsent = octets;
    this.#note();
  }

  #note(): void {
    const received = this.#pending.length;
    const all = this.#unsent + (received > LITTLE ? received : 0);
    if (all === this.#noted) return;
    this.#options.budget.noteUnsent(this.#noted, all);
    this.#noted = all;
  }

  #settleDrained(): void {
    this.#drained?.resolve();
    this.#drained = undefined;
  }

  /** One deadline for a whole message: a client that sends it octet by octet gains no time. */
  #expectMessage(timeout: number): void {
    const now = this.#options.clock.turnTime();
    this.#due = now + timeout;
    // A timer for each message would cost more than the message: the one that runs looks again when it is over.
    if (this.#timer === undefined || this.#due < this.#timerEnds) this.#startTimer(now, timeout);
  }

  #startTimer(now: number, delay: number): void {
    this.#timer?.cancel();
    this.#timerEnds = now + delay;
    this.#timer = this.#options.clock.after(delay, this.#onTimer);
  }

  readonly #onTimer = (): void => {
    this.#timer = undefined;
    // Timers run before sockets are read: after a pause of our own, what the client sent in time is looked at first.
    if (!this.#isWithinTime()) setImmediate(this.#onOverdue);
  };

  /** Whether the client has time left; then it is waited for. */
  #isWithinTime(): boolean {
    const now = this.#options.clock.now();
    const left = this.#due - now;
    if (left > 0 && this.#timer === undefined) this.#startTimer(now, left);
    return left > 0;
  }

  readonly #onOverdue = (): void => {
    if (this.#socket.destroyed || this.#isWithinTime()) return;
    // Whoever waits for an answer of ours is not idle, unless it takes nothing of what we send.
    if (this.#inFlight > 0 && !this.#isStuck) {
      this.#isStuck = this.#unsent > 0;
      this.#expectMessage(this.#options.limits().idleTimeout);
      return;
    }
    // TLS says goodbye (RFC 8446 section 6.1), unless the client reads nothing anyway.
    if (this.#unsent === 0) {
      this.#socket.destroySoon();
      return;
    }
    this.#options.onUnread?.();
    this.#socket.destroy();
  };

  #finishIfDone(): void {
    if (this.#inFlight > 0) return;
    if (this.#noMoreReads || (this.#hasEnded && !holdsMessage(this.#pending))) this.#socket.end();
  }
}

const EMPTY = Buffer.alloc(0);

function holdsMessage(pending: Buffer): boolean {
  return (
    pending.length >= LENGTH_OCTETS &&
    pending.length - LENGTH_OCTETS >= ((octetAt(pending, 0) << 8) | octetAt(pending, 1))
  );
}

class FramedReplyPort implements ReplyPort, PartPort {
  readonly #connection: FramedConnection;
  #framed: Uint8Array = EMPTY;
  #lent: PooledBuffer | undefined;

  constructor(connection: FramedConnection) {
    this.#connection = connection;
  }

  get client(): Endpoint {
    return this.#connection.client;
  }

  get local(): Endpoint {
    return this.#connection.local;
  }

  get parts(): PartPort {
    return this;
  }

  get isOpen(): boolean {
    return this.#connection.isOpen;
  }

  keep(): ReplyPort {
    return new FramedReplyPort(this.#connection);
  }

  buffer(size: number): Uint8Array {
    const octets = size + LENGTH_OCTETS;
    this.#lent = octets > LEAST_POOLED ? this.#connection.buffers.take(octets) : undefined;
    this.#framed = this.#lent?.bytes ?? Buffer.allocUnsafe(octets);
    return this.#framed.subarray(LENGTH_OCTETS);
  }

  send(length: number): void {
    const framed = this.#framed;
    const lent = this.#lent;
    this.#letGo();
    this.#connection.sendFramed(framed, length, lent);
  }

  sendPart(length: number): boolean {
    const framed = this.#framed;
    const lent = this.#lent;
    this.#letGo();
    return this.#connection.sendPart(framed, length, lent);
  }

  /** The port lives as long as its connection. */
  #letGo(): void {
    this.#framed = EMPTY;
    this.#lent = undefined;
  }

  drained(): Promise<void> {
    return this.#connection.drained();
  }

  drop(): void {
    this.#connection.dropped();
  }

  abort(): void {
    this.#connection.destroy();
  }
}
