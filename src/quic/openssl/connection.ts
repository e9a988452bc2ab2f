/** An OpenSSL connection, on either side. */
import type { QuicClosed, QuicConnectionUser, QuicPeer, QuicStream, QuicStreamUser } from "../quic.ts";
import * as C from "./constants.ts";
import type { Pointer, QuicLibrary } from "./library.ts";
import { OpenSslStream, type StreamMemory, type StreamOwner } from "./stream.ts";

export interface ConnectionOptions {
  readonly library: QuicLibrary;
  readonly memory: StreamMemory;
  readonly peer: QuicPeer;
  /** Open streams of the peer; others wait. */
  readonly maxStreams: () => number;
  /** Octets that it may hold for the peer until further streams wait. */
  readonly maxHeldForPeer: () => number;
  /** OpenSSL must process the connection before this turn ends. */
  readonly onTouched: () => void;
}

interface LastWords {
  readonly code: number;
  readonly reason: string;
  /** Whether sent data has to arrive first. */
  readonly flushes: boolean;
}

/** Memory of a stream of the peer in both directions, most of it OpenSSL's buffer for what is written. */
const STREAM_OCTETS = 10 * 1024;
/** Milliseconds from the close to the end. */
const LAST_MOMENT = 100;
/** Milliseconds in which late datagrams of a closed connection are answered with CONNECTION_CLOSE. */
const CLOSING = 1_000;

export class OpenSslConnection implements StreamOwner {
  readonly peer: QuicPeer;
  readonly pointer: Pointer;
  isConnected = false;
  /** Set before the first poll. */
  user: QuicConnectionUser | undefined;
  readonly #options: ConnectionOptions;
  readonly #streams = new Set<OpenSslStream>();
  #theirs = 0;
  /** Streams of the peer that were not accepted yet. */
  #waiting = 0;
  #held = 0;
  #isOpen = true;
  #isFreed = false;
  #closing: NodeJS.Timeout | undefined;
  /** The parameters of our close. */
  #last: LastWords = { code: 0, reason: "", flushes: false };

  constructor(pointer: Pointer, options: ConnectionOptions) {
    const { ssl } = options.library;
    this.pointer = pointer;
    this.peer = options.peer;
    this.#options = options;
    ssl.SSL_set_default_stream_mode(pointer, C.SSL_DEFAULT_STREAM_MODE_NONE);
    ssl.SSL_set_incoming_stream_policy(pointer, C.SSL_INCOMING_STREAM_POLICY_ACCEPT, 0);
    // Stream calls with implicit event handling would each process all connections of the listener.
    const { SSL_VALUE_CLASS_GENERIC, SSL_VALUE_EVENT_HANDLING_MODE, SSL_VALUE_EVENT_HANDLING_MODE_EXPLICIT } =
      C;
    ssl.SSL_set_value_uint(
      pointer,
      SSL_VALUE_CLASS_GENERIC,
      SSL_VALUE_EVENT_HANDLING_MODE,
      SSL_VALUE_EVENT_HANDLING_MODE_EXPLICIT,
    );
    const mode = C.SSL_MODE_ENABLE_PARTIAL_WRITE | C.SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER;
    ssl.SSL_ctrl(pointer, C.SSL_CTRL_MODE, mode, null);
    ssl.ERR_clear_error();
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get openStreams(): number {
    return this.#theirs;
  }

  get held(): number {
    return this.#held;
  }

  /** Whether OpenSSL has freed it. */
  get isOver(): boolean {
    return this.#isFreed;
  }

  openStream(unidirectional: boolean, user: QuicStreamUser): QuicStream | undefined {
    if (!this.#isOpen) return undefined;
    const { ssl } = this.#options.library;
    const flags = C.SSL_STREAM_FLAG_NO_BLOCK | (unidirectional ? C.SSL_STREAM_FLAG_UNI : 0);
    const pointer = ssl.SSL_new_stream(this.pointer, flags);
    if (pointer === 0) {
      ssl.ERR_clear_error();
      return undefined;
    }
    const stream = new OpenSslStream(this, pointer, { ...this.#options, isLocal: true });
    stream.user = user;
    this.#streams.add(stream);
    return stream;
  }

  touched(): void {
    this.#options.onTouched();
  }

  noteHeld(octets: number): void {
    const { memory } = this.#options;
    const before = this.#held;
    this.#held += octets;
    memory.held += octets;
    memory.holders += Number(this.#held > 0) - Number(before > 0);
  }

  forget(stream: OpenSslStream): void {
    if (!this.#streams.delete(stream) || stream.isLocal) return;
    this.#theirs--;
    if (!stream.isUnidirectional) this.noteHeld(-STREAM_OCTETS);
  }

  /** Processes received data. */
  poll(): void {
    if (this.#isFreed) return;
    const { ssl } = this.#options.library;
    if (this.#isOpen) {
      if (!this.isConnected && ssl.SSL_is_init_finished(this.pointer) === 1) {
        this.isConnected = true;
        this.user?.connected();
      }
      if (this.isConnected) this.#accept();
      // A finished stream makes room for a waiting one.
      while (this.#pollStreams()) this.#accept();
    }
    if (this.#isOpen) this.#look();
    else if (!this.#isFreed) this.#settle();
  }

  close(code: number, reason = ""): void {
    if (!this.#isOpen) return;
    this.#last = { code, reason, flushes: false };
    this.#shutDown();
    this.#end({ by: "us", code, text: reason });
    this.touched();
  }

  finish(code: number): void {
    if (!this.#isOpen) return;
    this.#last = { code, reason: "", flushes: true };
    this.#shutDown();
    this.#end({ by: "us", code, text: "" });
    this.touched();
  }

  /** The network below has failed. */
  break(text: string): void {
    this.#end({ by: "nobody", code: undefined, text });
    this.free();
    this.touched();
  }

  /** Without notifying the peer. */
  free(): void {
    if (this.#isFreed) return;
    this.#isFreed = true;
    this.#isOpen = false;
    this.user = undefined;
    clearTimeout(this.#closing);
    for (const stream of [...this.#streams]) stream.free();
    this.#noteWaiting(0);
    this.#options.library.ssl.SSL_free(this.pointer);
  }

  /** @returns whether streams of the peer have finished */
  #pollStreams(): boolean {
    const before = this.#theirs;
    for (const stream of this.#streams) {
      stream.poll();
      if (!this.#isOpen) return false;
    }
    return this.#theirs < before;
  }

  #accept(): void {
    const { ssl } = this.#options.library;
    const { maxStreams, maxHeldForPeer } = this.#options;
    const most = maxStreams();
    // Waiting streams are held as well, but only accepting them ends that.
    this.#noteWaiting(0);
    while (this.#theirs < most && this.#held <= maxHeldForPeer() && this.#isOpen) {
      const pointer = ssl.SSL_accept_stream(this.pointer, C.SSL_ACCEPT_STREAM_NO_BLOCK);
      if (pointer === 0) break;
      const stream = new OpenSslStream(this, pointer, { ...this.#options, isLocal: false });
      this.#streams.add(stream);
      this.#theirs++;
      if (!stream.isUnidirectional) this.noteHeld(STREAM_OCTETS);
      stream.user = this.user?.accepted(stream);
    }
    ssl.ERR_clear_error();
    this.#noteWaiting(this.#isOpen ? ssl.SSL_get_accept_stream_queue_len(this.pointer) : 0);
  }

  #noteWaiting(streams: number): void {
    this.noteHeld((streams - this.#waiting) * STREAM_OCTETS);
    this.#waiting = streams;
  }

  /** Called at its end, while OpenSSL still has all of its state. */
  protected ending(): void {
    // A server stores no sessions.
  }

  /** Checks whether it has ended. */
  #look(): void {
    const { library, memory } = this.#options;
    const { ssl } = library;
    const info = memory.closeInfo;
    if (ssl.SSL_get_conn_close_info(this.pointer, info, info.length) !== 1) {
      ssl.ERR_clear_error();
      return;
    }
    const view = new DataView(info.buffer);
    const flags = view.getUint32(C.CloseInfo.FLAGS, true);
    const length = Number(view.getBigUint64(C.CloseInfo.REASON_LENGTH, true));
    const at = Number(view.getBigUint64(C.CloseInfo.REASON, true));
    const text = length === 0 ? "" : Buffer.from(library.view(at, length)).toString("latin1");
    const isTransport = (flags & C.SSL_CONN_CLOSE_FLAG_TRANSPORT) !== 0;
    this.#end({
      by: (flags & C.SSL_CONN_CLOSE_FLAG_LOCAL) === 0 ? "peer" : "nobody",
      code: isTransport ? undefined : Number(view.getBigUint64(C.CloseInfo.CODE, true)),
      text,
    });
    this.#settle();
  }

  /** Once its last datagrams are sent, OpenSSL answers late ones only for a short time. */
  #settle(): void {
    if (this.#shutDown() === 1) this.free();
  }

  #shutDown(): number {
    const { code, reason, flushes } = this.#last;
    const { ssl, addressOf } = this.#options.library;
    const codes = new Uint8Array(new ArrayBuffer(C.ShutdownArguments.OCTETS));
    const view = new DataView(codes.buffer);
    view.setBigUint64(C.ShutdownArguments.CODE, BigInt(code), true);
    const text = new Uint8Array(new ArrayBuffer(reason.length + 1));
    text.set(Buffer.from(reason, "latin1"));
    view.setBigUint64(C.ShutdownArguments.REASON, BigInt(addressOf(text)), true);
    const flags =
      C.SSL_SHUTDOWN_FLAG_RAPID |
      C.SSL_SHUTDOWN_FLAG_NO_BLOCK |
      (flushes ? 0 : C.SSL_SHUTDOWN_FLAG_NO_STREAM_FLUSH);
    const result = ssl.SSL_shutdown_ex(this.pointer, flags, codes, codes.length);
    ssl.ERR_clear_error();
    return result;
  }

  #end(reason: QuicClosed): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.ending();
    this.#closing = setTimeout(() => {
      // A peer that has not acknowledged everything by now gets no more.
      this.#last = { ...this.#last, flushes: false };
      this.touched();
      this.#closing = setTimeout(() => {
        this.free();
        this.touched();
      }, LAST_MOMENT);
    }, CLOSING);
    for (const stream of [...this.#streams]) stream.free();
    this.#theirs = 0;
    this.#noteWaiting(0);
    const { user } = this;
    this.user = undefined;
    user?.closed(reason);
  }
}
