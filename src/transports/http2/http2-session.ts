/**
 * The server side of HTTP/2 on a byte stream (RFC 9113), as far as DNS over HTTPS and gRPC need it: requests arrive on streams, and
 * responses are sent in the order in which they are ready. No push, no priorities. Everything that a client can make grow is
 * limited, and frames that advance no request are counted against it.
 */
import { readU32, writeU32 } from "../../dns/octets.ts";
import type { Timer } from "../../lib/time/clock.ts";
import type { ByteStream, StreamUser } from "../byte-stream-server.ts";
import type { ConnectionAccount } from "../connection-budget.ts";
import { readStreamWindow } from "./client-settings.ts";
import { frameFault } from "./control-frames.ts";
import { FrameIntake, type FrameUser } from "./frame-intake.ts";
import { FrameSender, type SenderUser } from "./frame-sender.ts";
import { HpackDecoder, HpackError } from "./hpack-decoder.ts";
import {
  DEFAULT_WINDOW,
  ErrorCode,
  type ErrorCodeNumber,
  FrameFlag,
  FrameType,
  MAX_WINDOW,
} from "./http2-frames.ts";
import type { Http2Stream, StreamHome } from "./http2-stream.ts";
import { Patience } from "./patience.ts";
import { ReceiveWindow } from "./receive-window.ts";
import type { RequestHead } from "./request-head.ts";
import { greet } from "./server-settings.ts";
import { type Http2Options, SharedBySessions } from "./shared-by-sessions.ts";
import { StreamNumbers } from "./stream-numbers.ts";
import { hasUnsent, isAny, isUnfinished, StreamTable } from "./stream-table.ts";

/** Frames between two looks at the clock. */
const FRAMES_A_LOOK = 4;

/** The sessions of a listener. */
export class Http2Sessions extends SharedBySessions {
  serve(stream: ByteStream, account: ConnectionAccount): StreamUser {
    return new Http2Session(stream, this, account);
  }
}

/** A smaller part of a body is a crumb. */
const CRUMB = 256;
const NO_OCTETS = new Uint8Array(0);

export class Http2Session implements StreamUser, FrameUser, SenderUser<Http2Stream>, StreamHome {
  readonly stream: ByteStream;
  readonly sender: FrameSender<Http2Stream>;
  /** Initial send window of new streams, as set by the client. */
  streamSendWindow = DEFAULT_WINDOW;
  readonly #sessions: Http2Sessions;
  readonly #options: Http2Options;
  readonly #account: ConnectionAccount;
  readonly #intake: FrameIntake;
  readonly #decoder: HpackDecoder;
  readonly #streams = new StreamTable();
  readonly #numbers = new StreamNumbers();
  readonly #maxStreams: number;
  /** Messages with the receiver, and those of them whose client gave up: these still count as streams. */
  #asked = 0;
  #orphans = 0;
  readonly #receiveWindow = new ReceiveWindow();
  readonly #patience: Patience;
  /** No further requests. */
  #isEnding = false;
  /** All further data is ignored. */
  #isOver = false;
  /** It was already due to be closed at the last check. */
  #isLate = false;
  #looks = 0;
  /** Received data is processed in a later turn. Until then nothing more is read. */
  #takesLater = false;
  #readTimeout = 0;
  #timer: Timer | undefined;
  #idleSince: number;

  constructor(stream: ByteStream, sessions: Http2Sessions, account: ConnectionAccount) {
    const { options, slab, scratch } = sessions;
    const { socket } = stream;
    this.stream = stream;
    this.#sessions = sessions;
    this.#options = options;
    this.#account = account;
    this.#decoder = new HpackDecoder(scratch);
    this.#intake = new FrameIntake(this);
    this.sender = new FrameSender(socket, account, slab, this, options.separateResponses === true);
    this.#maxStreams = options.maxStreams();
    this.#idleSince = options.clock.now();
    this.#patience = new Patience(this.#idleSince);
    socket.on("data", (data: Buffer) => this.#take(data));
    socket.on("end", () => this.#clientIsDone());
    socket.on("drain", () => {
      this.sender.drained();
      this.#resume();
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#closed());
    greet(this.sender, this.#maxStreams);
    this.#watch();
  }

  get awaitsAnswers(): boolean {
    return this.#asked > this.#orphans;
  }

  /** Sends GOAWAY; requests in flight are still answered. */
  stopReading(): void {
    if (!this.#isEnding) this.#writeGoodbye(ErrorCode.NO_ERROR);
    this.#isEnding = true;
    this.#finishIfDone();
  }

  // The interface for streams.

  get requestDeadline(): number {
    return this.#now + this.#readTimeout;
  }

  /** The message of a stream goes to the receiver: the query may take any time. */
  asked(stream: Http2Stream): void {
    stream.isAsked = true;
    stream.deadline = Number.POSITIVE_INFINITY;
    this.#asked++;
    this.#account.heardFrom();
  }

  /** The receiver has settled the message of a stream. @returns whether the stream can still be answered */
  settled(stream: Http2Stream): boolean {
    if (!stream.isAsked) return stream.isOpen;
    stream.isAsked = false;
    this.#asked--;
    if (!stream.isOpen) this.#orphans--;
    return stream.isOpen;
  }

  respond(stream: Http2Stream, block: Uint8Array, body: Uint8Array, trailers?: Uint8Array): void {
    if (!stream.isOpen) return;
    stream.deadline = this.#now + this.#options.timeouts().write;
    this.sender.respond(stream, block, body, trailers);
  }

  // The events of the sender.

  finished(stream: Http2Stream): void {
    if (stream.isWhole) this.#patience.restore();
    // The rest of a request that is already answered is not awaited (RFC 9113 section 8.1).
    else this.#writeReset(stream, ErrorCode.NO_ERROR);
    this.#remove(stream);
  }

  unread(): void {
    this.#account.giveUp();
  }

  // The events of the intake.

  get isBusy(): boolean {
    if (this.#isOver || this.sender.isFull) return true;
    if (++this.#looks % FRAMES_A_LOOK === 0 && this.#sessions.turns.isOver) this.#takesLater = true;
    return this.#takesLater;
  }

  fail(code: ErrorCodeNumber): void {
    if (this.#isOver) return;
    this.#options.onFault?.();
    this.#isOver = true;
    this.#writeGoodbye(code);
    this.#forgetStreams();
    this.sender.output.flush();
    this.stream.socket.destroySoon();
  }

  header(
    id: number,
    isLast: boolean,
    dependency: number,
    octets: Uint8Array,
    start: number,
    end: number,
  ): void {
    const { head } = this.#sessions;
    head.reset();
    try {
      this.#decoder.decode(octets, start, end, head);
    } catch (error) {
      if (!(error instanceof HpackError)) throw error;
      this.fail(ErrorCode.COMPRESSION_ERROR);
      return;
    }
    const isWellFormed = dependency !== id;
    if (id % 2 === 0) this.fail(ErrorCode.PROTOCOL_ERROR);
    else if (id <= this.#numbers.last) this.#trailers(id, isLast, isWellFormed && head.isTrailers);
    // GOAWAY says which requests are not answered: the client retries elsewhere.
    else if (this.#isEnding) this.#numbers.passOver(id);
    else {
      this.#numbers.begin(id);
      this.#request(id, head, isLast, isWellFormed && head.isRequest);
    }
  }

  data(id: number, isLast: boolean, octets: Uint8Array, length: number): void {
    const stream = this.#streams.find(id);
    if (!this.#receiveWindow.take(length)) this.fail(ErrorCode.FLOW_CONTROL_ERROR);
    else if (stream === undefined) this.#afterTheEnd(id, isLast);
    else if (!isLast && octets.length < CRUMB) this.#spendPatience();
    if (this.#isOver) return;
    this.#returnWindow(length);
    if (stream === undefined) return;
    stream.receiveWindow -= length;
    if (stream.isWhole) this.#reset(stream, ErrorCode.STREAM_CLOSED);
    else if (stream.receiveWindow < 0) this.#reset(stream, ErrorCode.FLOW_CONTROL_ERROR);
    else if (!stream.take(octets, isLast)) this.#reset(stream, ErrorCode.PROTOCOL_ERROR);
  }

  control(type: number, flags: number, id: number, payload: Uint8Array): void {
    this.#spendPatience();
    if (this.#isOver) return;
    const fault = frameFault(type, flags, id, payload.length);
    if (fault !== undefined) {
      this.fail(fault);
      return;
    }
    const isAnswer = (flags & FrameFlag.ACK) !== 0;
    switch (type) {
      case FrameType.SETTINGS:
        if (!isAnswer) this.#settings(payload);
        return;
      case FrameType.WINDOW_UPDATE:
        this.#windowUpdate(id, readU32(payload, 0) & MAX_WINDOW);
        return;
      case FrameType.RST_STREAM:
        if (this.#numbers.isIdle(id)) this.fail(ErrorCode.PROTOCOL_ERROR);
        this.#numbers.end(id);
        this.#remove(this.#streams.find(id));
        return;
      case FrameType.PING:
        if (!isAnswer) this.sender.writeFrame(FrameType.PING, FrameFlag.ACK, 0, payload);
        return;
      case FrameType.PRIORITY:
        if ((readU32(payload, 0) & MAX_WINDOW) === id) this.#dependsOnItself(id);
    }
  }

  #take(data: Uint8Array): void {
    if (this.#isOver) return;
    this.#account.notePassed(data.length);
    const wasToTakeLater = this.#takesLater;
    this.sender.hold();
    this.#intake.take(data);
    this.sender.letGo();
    this.sender.holdsArrived(this.#intake.pending);
    this.#finishIfDone();
    if (this.#isOver) return;
    if (this.sender.isFull || this.#takesLater) this.stream.socket.pause();
    if (this.#takesLater && !wasToTakeLater) this.#sessions.turns.later(this.#takeOn);
  }

  readonly #takeOn = (): void => {
    this.#takesLater = false;
    if (this.#isOver) return;
    if (!this.sender.isFull) this.stream.socket.resume();
    this.#take(NO_OCTETS);
  };

  #resume(): void {
    const { socket } = this.stream;
    if (!socket.isPaused() || this.sender.isFull || this.#takesLater) return;
    socket.resume();
    // Frames that had already arrived cause no further event.
    setImmediate(() => this.#take(NO_OCTETS));
  }

  #request(id: number, head: RequestHead, isWhole: boolean, isWellFormed: boolean): void {
    const isCrowded = this.#streams.size + this.#orphans >= this.#maxStreams || this.sender.isCrowded;
    if (isCrowded || !isWellFormed || (isWhole && head.contentLength > 0)) {
      this.#spendPatience();
      if (this.#isOver) return;
      const code = isCrowded ? ErrorCode.REFUSED_STREAM : ErrorCode.PROTOCOL_ERROR;
      this.sender.writeNumber(FrameType.RST_STREAM, id, code);
      if (!isWhole) this.#numbers.reset(id);
      return;
    }
    const stream = this.#options.open(this, id);
    stream.expect(head.contentLength);
    stream.isWhole = isWhole;
    this.#streams.add(stream);
    stream.begin(head);
  }

  /** Trailers have no meaning here. */
  #trailers(id: number, isLast: boolean, isWellFormed: boolean): void {
    const stream = this.#streams.find(id);
    if (stream === undefined) {
      this.#afterTheEnd(id, isLast);
      return;
    }
    this.#spendPatience();
    if (this.#isOver) return;
    if (stream.isWhole) this.#reset(stream, ErrorCode.STREAM_CLOSED);
    else if (!isLast || !isWellFormed || !stream.take(NO_OCTETS, true))
      this.#reset(stream, ErrorCode.PROTOCOL_ERROR);
  }

  /** A part of a request arrived on a stream that is not open. */
  #afterTheEnd(id: number, isLast: boolean): void {
    const fault = this.#numbers.faultOf(id);
    if (fault === undefined) this.#spendPatience();
    else this.fail(fault);
    if (isLast) this.#numbers.end(id);
  }

  /** RFC 9113 has no priorities any more; by RFC 7540 section 5.3.1 this is an error. An idle stream cannot be reset. */
  #dependsOnItself(id: number): void {
    const stream = this.#streams.find(id);
    if (stream !== undefined) this.#reset(stream, ErrorCode.PROTOCOL_ERROR);
    else if (this.#numbers.isIdle(id)) this.fail(ErrorCode.PROTOCOL_ERROR);
  }

  /** A change of the initial window also changes open streams (RFC 9113 section 6.9.2). */
  #settings(payload: Uint8Array): void {
    const said = readStreamWindow(payload, this.streamSendWindow);
    if ("fault" in said) {
      this.fail(said.fault);
      return;
    }
    const change = said.window - this.streamSendWindow;
    this.streamSendWindow = said.window;
    const changed = change === 0 ? [] : this.#streams.those(isAny);
    for (const stream of changed) stream.sendWindow += change;
    if (changed.some(({ sendWindow }) => sendWindow > MAX_WINDOW)) {
      this.fail(ErrorCode.FLOW_CONTROL_ERROR);
      return;
    }
    // The acknowledgement precedes the data that the new window allows (RFC 9113 section 6.5.3).
    this.sender.writeFrame(FrameType.SETTINGS, FrameFlag.ACK, 0, NO_OCTETS);
    for (const stream of changed) if (stream.isOpen) this.sender.sendBody(stream);
  }

  #windowUpdate(id: number, octets: number): void {
    if (id === 0) {
      if (octets === 0) this.fail(ErrorCode.PROTOCOL_ERROR);
      else if (!this.sender.widen(octets)) this.fail(ErrorCode.FLOW_CONTROL_ERROR);
      else if (this.sender.hasWaiting)
        for (const stream of this.#streams.those(hasUnsent)) this.sender.sendBody(stream);
      return;
    }
    if (this.#numbers.isIdle(id)) this.fail(ErrorCode.PROTOCOL_ERROR);
    const stream = this.#streams.find(id);
    if (stream === undefined) return;
    stream.sendWindow += octets;
    if (octets === 0) this.#reset(stream, ErrorCode.PROTOCOL_ERROR);
    else if (stream.sendWindow > MAX_WINDOW) this.#reset(stream, ErrorCode.FLOW_CONTROL_ERROR);
    else this.sender.sendBody(stream);
  }

  get #now(): number {
    return this.#options.clock.turnTime();
  }

  /** Kept octets have their own limit, so the window is returned at once. */
  #returnWindow(octets: number): void {
    const returned = this.#receiveWindow.giveBack(octets);
    if (returned > 0) this.sender.writeNumber(FrameType.WINDOW_UPDATE, 0, returned);
  }

  #spendPatience(): void {
    if (!this.#patience.spend(this.#now)) this.fail(ErrorCode.ENHANCE_YOUR_CALM);
  }

  #writeReset(stream: Http2Stream, code: ErrorCodeNumber): void {
    this.sender.writeNumber(FrameType.RST_STREAM, stream.id, code);
    if (!stream.isWhole) this.#numbers.reset(stream.id);
  }

  #reset(stream: Http2Stream, code: ErrorCodeNumber): void {
    this.#writeReset(stream, code);
    this.sender.flushSoon();
    this.#remove(stream);
  }

  #remove(stream: Http2Stream | undefined): void {
    if (stream === undefined || !this.#streams.remove(stream)) return;
    stream.isOpen = false;
    if (stream.isAsked) this.#orphans++;
    this.sender.forget(stream);
    stream.dropBody();
    this.#idleSince = this.#now;
    if (this.#isEnding) this.#finishIfDone();
  }

  #writeGoodbye(code: ErrorCodeNumber): void {
    const payload = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, code);
    writeU32(payload, 0, this.#numbers.last);
    this.sender.writeFrame(FrameType.GOAWAY, 0, 0, payload);
    this.sender.flushSoon();
  }

  #clientIsDone(): void {
    this.#isEnding = true;
    // Incomplete requests will never be complete.
    for (const stream of this.#streams.those(isUnfinished)) this.#remove(stream);
    this.#finishIfDone();
  }

  #finishIfDone(): void {
    if (!this.#isEnding || this.#isOver || this.#streams.size > 0) return;
    this.#isOver = true;
    this.sender.output.flush();
    this.stream.socket.end();
  }

  #forgetStreams(): void {
    for (const stream of this.#streams.those(isAny)) this.#remove(stream);
  }

  #closed(): void {
    this.#isOver = true;
    this.#timer?.cancel();
    this.#forgetStreams();
    this.sender.closed();
  }

  /** One timer for all streams: a deadline may be late by a quarter of the shortest timeout. */
  #watch(): void {
    const { read, write, idle } = this.#options.timeouts();
    this.#readTimeout = read;
    // Timers run before sockets are read: after a pause of the process, data that arrived in time is processed first.
    this.#timer = this.#options.clock.after(Math.min(read, write, idle) / 4, () => setImmediate(this.#look));
  }

  readonly #look = (): void => {
    if (this.stream.socket.destroyed) return;
    const { clock, onTimeout } = this.#options;
    const { write, idle } = this.#options.timeouts();
    const now = clock.now();
    for (const stream of this.#streams.those(({ deadline }) => deadline <= now)) {
      onTimeout?.(stream.unsent === undefined ? "request" : "response");
      this.#reset(stream, ErrorCode.CANCEL);
    }
    const isStuck = this.sender.isStuck(now, write);
    if (isStuck) onTimeout?.("response");
    // A client that got GOAWAY and has not closed by the next check is disconnected.
    if (isStuck || (this.#isOver && this.#isLate)) this.stream.socket.destroy();
    this.#isLate = this.#isOver;
    if (!this.awaitsAnswers && this.#streams.size === 0 && now - this.#idleSince >= idle) this.stopReading();
    if (!this.stream.socket.destroyed) this.#watch();
  };
}
