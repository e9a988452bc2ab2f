/** The send side of an HTTP/2 connection: frames, gathered into few writes, within the client's windows (RFC 9113 section 5.2). */
import type { Socket } from "node:net";
import { copyOctets, writeU32 } from "../../dns/octets.ts";
import { type ConnectionAccount, REPLY_OBJECTS_OCTETS, UNNOTICED } from "../connection-budget.ts";
import { GatheredOutput, type OutputSlab, PORTION, SLAB_OCTETS, SMALL_PORTION } from "./gathered-output.ts";
import { NO_TABLE } from "./hpack-encoder.ts";
import {
  DEFAULT_WINDOW,
  FRAME_HEAD,
  FrameFlag,
  FrameType,
  MAX_FRAME,
  MAX_WINDOW,
  writeFrameHead,
} from "./http2-frames.ts";

/** The send state of a stream. */
export interface SendingStream {
  readonly id: number;
  /** The stream's send window. */
  sendWindow: number;
  /** The part of a response that waits for the client's windows, and its trailers. */
  unsent: Uint8Array | undefined;
  trailers: Uint8Array | undefined;
}

export interface SenderUser<Stream> {
  /** The last frame of a response has been written. */
  finished(stream: Stream): void;
  /** The client leaves too much unread. */
  unread(): void;
}

export class FrameSender<Stream extends SendingStream> {
  readonly output: GatheredOutput;
  readonly #socket: Socket;
  readonly #account: ConnectionAccount;
  readonly #user: SenderUser<Stream>;
  readonly #isSeparate: boolean;
  /** Over TLS, waiting data exists twice: as written, and encrypted. */
  readonly #copies: 1 | 2;
  /** The connection's send window. */
  #window = DEFAULT_WINDOW;
  #hasSaidNoTable = false;
  /** Octets of bodies that wait for the client's windows. */
  #waiting = 0;
  /** Octets of incomplete requests. */
  #kept = 0;
  /** Octets received but not yet processed. */
  #arrived = 0;
  /** Writes in progress. */
  #writes = 0;
  /** Whether the client is behind with reading, how much had been sent at the last check, and the time when it was less. */
  #isBehind = false;
  #left = 0;
  #leftAt = 0;
  #isHeld = false;
  #isScheduled = false;
  readonly #flush = (): void => {
    this.#isScheduled = false;
    this.output.flush();
  };

  readonly #onWritten = (): void => {
    this.#writes--;
    this.#note();
  };

  /** @param isSeparate whether each response has its own write, and so its own TLS record */
  constructor(
    socket: Socket,
    account: ConnectionAccount,
    slab: OutputSlab,
    user: SenderUser<Stream>,
    isSeparate: boolean,
  ) {
    this.#socket = socket;
    this.#account = account;
    this.#user = user;
    this.#isSeparate = isSeparate;
    this.#copies = "encrypted" in socket ? 2 : 1;
    // Node joins writes that wait for another write.
    if (isSeparate) Object.defineProperty(socket, "_writev", { value: undefined });
    this.output = new GatheredOutput(slab, (octets) => this.#write(octets));
  }

  /** Whether the client has to read before the server processes more of its data. */
  get isFull(): boolean {
    return this.#isBehind && this.#socket.writableLength > this.#account.unsentLimit;
  }

  /** Whether so much waits for the client's windows that no new request should start. */
  get isCrowded(): boolean {
    return this.#waiting > this.#account.unsentLimit / 2;
  }

  /** Octets before the next response's header block, written by {@link writeBeginning}. */
  get beginning(): 0 | 1 {
    return this.#hasSaidNoTable ? 0 : 1;
  }

  /** The first block of a connection disables the dynamic table. @returns where the block continues */
  writeBeginning(out: Uint8Array, at: number): number {
    if (this.#hasSaidNoTable) return at;
    this.#hasSaidNoTable = true;
    out[at] = NO_TABLE;
    return at + 1;
  }

  /** Whether a body of this many octets may be sent at once, in one frame. */
  hasWindow(stream: Stream, octets: number): boolean {
    return octets <= MAX_FRAME && octets <= this.#window && octets <= stream.sendWindow;
  }

  /** A whole response was written to the output, after {@link hasWindow} allowed it. */
  wrote(stream: Stream, end: number, body: number): void {
    this.output.length = end;
    this.#window -= body;
    this.#finish(stream);
    this.flushSoon();
  }

  /**
   * Sends a response; the part that exceeds the client's windows waits in the stream.
   * @param block header block
   * @param body may be lent
   * @param trailers another header block
   */
  respond(stream: Stream, block: Uint8Array, body: Uint8Array, trailers: Uint8Array | undefined): void {
    if (this.#waiting > 0 && !this.#mayKeep(body.length)) {
      this.#user.unread();
      return;
    }
    const isEmpty = body.length === 0 && trailers === undefined;
    this.#writeBlock(stream.id, block, isEmpty);
    this.flushSoon();
    if (isEmpty) {
      this.#finish(stream);
      return;
    }
    stream.unsent = body;
    stream.trailers = trailers;
    this.#waiting += body.length;
    this.sendBody(stream);
    // Lent octets are copied.
    const { unsent } = stream;
    if (unsent !== undefined) stream.unsent = copyOctets(unsent, 0, unsent.length);
    this.#note();
  }

  /** Sends as much as the client's windows allow. */
  sendBody(stream: Stream): void {
    const { unsent, trailers } = stream;
    if (unsent === undefined) return;
    let sent = 0;
    while (sent < unsent.length) {
      const left = unsent.length - sent;
      const octets = Math.min(left, MAX_FRAME, this.#window, stream.sendWindow);
      if (octets <= 0) break;
      const isEnd = octets === left && trailers === undefined;
      const flags = isEnd ? FrameFlag.END_STREAM : 0;
      this.writeFrame(FrameType.DATA, flags, stream.id, unsent.subarray(sent, sent + octets));
      sent += octets;
      this.#window -= octets;
      stream.sendWindow -= octets;
    }
    this.#waiting -= sent;
    stream.unsent = unsent.subarray(sent);
    if (sent < unsent.length) return;
    stream.unsent = undefined;
    if (trailers !== undefined) this.#writeBlock(stream.id, trailers, true);
    this.#finish(stream);
  }

  /** Drops the unsent rest of a response. */
  forget(stream: Stream): void {
    if (stream.unsent === undefined) return;
    this.#waiting -= stream.unsent.length;
    stream.unsent = undefined;
    this.#note();
  }

  /**
   * Counts more or fewer octets of kept requests, against the budget for unread data.
   * @returns false if there is no room for them
   */
  keep(octets: number): boolean {
    if (octets > 0 && !(this.#mayKeep(octets) && this.#account.takes(octets))) return false;
    this.#kept += octets;
    this.#note();
    return true;
  }

  /** Sets the octets received but not yet processed. */
  holdsArrived(octets: number): void {
    if (octets === this.#arrived) return;
    this.#arrived = octets;
    this.#note();
  }

  /** @returns false if the window would overflow */
  widen(octets: number): boolean {
    this.#window += octets;
    return this.#window <= MAX_WINDOW;
  }

  get hasWaiting(): boolean {
    return this.#waiting > 0;
  }

  writeFrame(type: number, flags: number, stream: number, payload: Uint8Array): void {
    const { output } = this;
    const at = output.room(FRAME_HEAD + payload.length);
    const start = writeFrameHead(output.octets, at, payload.length, type, flags, stream);
    output.octets.set(payload, start);
    output.length = start + payload.length;
  }

  /** A frame with a 32-bit payload. */
  writeNumber(type: number, stream: number, value: number): void {
    const { output } = this;
    const start = output.room(FRAME_HEAD + 4);
    const at = writeFrameHead(output.octets, start, 4, type, 0, stream);
    writeU32(output.octets, at, value);
    output.length = at + 4;
  }

  /** Gathers all writes until {@link letGo}. */
  hold(): void {
    this.#isHeld = true;
    this.output.portion = PORTION;
  }

  letGo(): void {
    this.#isHeld = false;
    this.output.flush();
    this.output.portion = SMALL_PORTION;
  }

  /** Sends everything written at the end of this turn at the latest. */
  flushSoon(): void {
    if (this.#isHeld || this.#isScheduled) return;
    this.#isScheduled = true;
    process.nextTick(this.#flush);
  }

  drained(): void {
    this.#isBehind = false;
    this.#note();
  }

  closed(): void {
    this.#isBehind = false;
    this.#waiting = 0;
    this.#arrived = 0;
    this.#account.holds(0, false);
  }

  /** Whether the client has been behind for this long and has read nothing. */
  isStuck(now: number, patience: number): boolean {
    const left = this.#socket.bytesWritten - this.#socket.writableLength;
    if (!this.#isBehind || left !== this.#left) {
      this.#left = left;
      this.#leftAt = now;
    }
    return this.#isBehind && now - this.#leftAt >= patience;
  }

  #finish(stream: Stream): void {
    this.#user.finished(stream);
    if (this.#isSeparate) this.output.flush();
  }

  #writeBlock(stream: number, block: Uint8Array, isEnd: boolean): void {
    const { output } = this;
    const length = this.beginning + block.length;
    const at = output.room(FRAME_HEAD + length);
    const flags = FrameFlag.END_HEADERS | (isEnd ? FrameFlag.END_STREAM : 0);
    const head = writeFrameHead(output.octets, at, length, FrameType.HEADERS, flags, stream);
    const start = this.writeBeginning(output.octets, head);
    output.octets.set(block, start);
    output.length = start + block.length;
  }

  #write(octets: Uint8Array): void {
    const socket = this.#socket;
    if (socket.destroyed || socket.writableEnded) return;
    // A reply to a client that reads nothing is dropped: it may ask again when it reads. Replies gathered before are kept.
    const unread = socket.writableLength;
    const limit = this.#account.unsentLimit + SLAB_OCTETS;
    if (unread > 0 && unread > limit) {
      this.#user.unread();
      return;
    }
    this.#account.notePassed(octets.length);
    this.#writes++;
    if (!socket.write(octets, this.#onWritten)) this.#isBehind = true;
    this.#note();
  }

  #mayKeep(octets: number): boolean {
    const account = this.#account;
    return this.#waiting + this.#kept + octets <= account.unsentLimit && account.hasRoomFor(octets);
  }

  #note(): void {
    const { writableLength } = this.#socket;
    const waiting = this.#copies * writableLength + this.#writes * REPLY_OBJECTS_OCTETS;
    const written = writableLength > 0 && (this.#isBehind || waiting > UNNOTICED) ? waiting : 0;
    const arrived = this.#arrived > UNNOTICED ? this.#arrived : 0;
    this.#account.holds(this.#waiting + this.#kept + arrived + written, this.#isBehind);
  }
}
