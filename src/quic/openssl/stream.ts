/** An OpenSSL stream. */
import type { QuicConnection, QuicStream, QuicStreamUser } from "../quic.ts";
import * as C from "./constants.ts";
import type { Pointer, QuicLibrary } from "./library.ts";

/** Memory for OpenSSL's results, shared by all connections of a thread. */
export class StreamMemory {
  readonly closeInfo = new Uint8Array(new ArrayBuffer(C.CloseInfo.OCTETS));
  readonly octets = new Uint8Array(new ArrayBuffer(65_536));
  readonly number = new Uint8Array(new ArrayBuffer(8));
  readonly view = new DataView(this.number.buffer);
  /** Octets that the connections hold: their streams, and what was written and not acknowledged. */
  held = 0;
  /** Connections that hold any. */
  holders = 0;
}

/** The connection, as its streams see it. */
export interface StreamOwner extends QuicConnection {
  /** OpenSSL has octets or codes to send. */
  touched(): void;
  /** Octets were written to a stream, or acknowledged (negative). */
  noteHeld(octets: number): void;
  /** OpenSSL has freed the stream. */
  forget(stream: OpenSslStream): void;
}

export class OpenSslStream implements QuicStream {
  readonly connection: StreamOwner;
  readonly id: number;
  readonly isUnidirectional: boolean;
  readonly isLocal: boolean;
  user: QuicStreamUser | undefined;
  readonly #library: QuicLibrary;
  readonly #memory: StreamMemory;
  readonly #pointer: Pointer;
  /** Octets that OpenSSL had no room for. */
  #rest: Uint8Array | undefined;
  #restIsLast = false;
  #reads: boolean;
  #isFinished = false;
  /** Octets written and not acknowledged. */
  #unsent = 0;
  #isFreed = false;

  constructor(
    connection: StreamOwner,
    pointer: Pointer,
    options: { library: QuicLibrary; memory: StreamMemory; isLocal: boolean },
  ) {
    const { library, memory, isLocal } = options;
    this.connection = connection;
    this.#pointer = pointer;
    this.#library = library;
    this.#memory = memory;
    this.isLocal = isLocal;
    this.id = library.ssl.SSL_get_stream_id(pointer);
    this.isUnidirectional = (this.id & 2) !== 0;
    this.#reads = !(isLocal && this.isUnidirectional);
  }

  /** Whether it is finished in both directions. */
  get isOver(): boolean {
    return this.#isFreed;
  }

  write(octets: Uint8Array, isLast: boolean): void {
    if (this.#isFreed || this.#isFinished) return;
    this.#isFinished = isLast;
    if (isLast) {
      // What is written to a stream that goes on, such as one for control, is little.
      this.#unsent += octets.length;
      this.connection.noteHeld(octets.length);
    }
    this.#push(octets, isLast);
    this.connection.touched();
  }

  reset(code: number): void {
    if (this.#isFreed) return;
    this.#memory.view.setBigUint64(0, BigInt(code), true);
    this.#library.ssl.SSL_stream_reset(this.#pointer, this.#memory.number, 8);
    this.#library.ssl.ERR_clear_error();
    this.connection.touched();
    this.free();
  }

  /** Reads received data, and writes waiting data. */
  poll(): void {
    if (this.#reads) this.#read();
    if (this.#isFreed) return;
    if (this.isUnidirectional && !this.isLocal) {
      if (!this.#reads) this.free();
      return;
    }
    if (this.#rest !== undefined) this.#push(this.#rest, this.#restIsLast);
    if (this.#isFinished && (!this.isLocal || !this.#reads) && this.#hasArrived()) this.free();
  }

  free(): void {
    if (this.#isFreed) return;
    this.#isFreed = true;
    this.#rest = undefined;
    this.connection.noteHeld(-this.#unsent);
    this.#unsent = 0;
    this.user = undefined;
    this.#library.ssl.SSL_free(this.#pointer);
    this.connection.forget(this);
  }

  #push(octets: Uint8Array, isLast: boolean): void {
    const { ssl } = this.#library;
    if (octets.length === 0) {
      if (isLast) ssl.SSL_stream_conclude(this.#pointer, 0);
      return;
    }
    const flags = isLast ? C.SSL_WRITE_FLAG_CONCLUDE : 0;
    const { number, view } = this.#memory;
    const result = ssl.SSL_write_ex2(this.#pointer, octets, octets.length, flags, number);
    const taken = result === 1 ? view.getUint32(0, true) : 0;
    if (taken === octets.length) {
      this.#rest = undefined;
      return;
    }
    const error = result === 1 ? C.SSL_ERROR_WANT_WRITE : ssl.SSL_get_error(this.#pointer, result);
    ssl.ERR_clear_error();
    if (error === C.SSL_ERROR_WANT_WRITE || error === C.SSL_ERROR_WANT_READ) {
      // The octets may belong to the caller.
      this.#rest = this.#rest === undefined ? octets.slice(taken) : octets.subarray(taken);
      this.#restIsLast = isLast;
      return;
    }
    this.#lose();
  }

  #hasArrived(): boolean {
    if (this.#rest !== undefined) return false;
    const { ssl } = this.#library;
    const { number, view } = this.#memory;
    const { SSL_VALUE_CLASS_GENERIC, SSL_VALUE_STREAM_WRITE_BUF_USED } = C;
    const known = ssl.SSL_get_value_uint(
      this.#pointer,
      SSL_VALUE_CLASS_GENERIC,
      SSL_VALUE_STREAM_WRITE_BUF_USED,
      number,
    );
    // OpenSSL frees the buffer of a stream once the peer has acknowledged all of it.
    if (known !== 1) ssl.ERR_clear_error();
    return known !== 1 || view.getUint32(0, true) === 0;
  }

  #read(): void {
    const { ssl } = this.#library;
    const { octets, number, view } = this.#memory;
    while (this.#reads && !this.#isFreed) {
      const result = ssl.SSL_read_ex(this.#pointer, octets, octets.length, number);
      if (result === 1) {
        const count = view.getUint32(0, true);
        const isLast = ssl.SSL_get_stream_read_state(this.#pointer) === C.SSL_STREAM_STATE_FINISHED;
        if (isLast) this.#reads = false;
        this.user?.received(octets.subarray(0, count), isLast);
        continue;
      }
      const error = ssl.SSL_get_error(this.#pointer, result);
      ssl.ERR_clear_error();
      if (error === C.SSL_ERROR_WANT_READ || error === C.SSL_ERROR_WANT_WRITE) return;
      this.#reads = false;
      if (error === C.SSL_ERROR_ZERO_RETURN) this.user?.received(NO_OCTETS, true);
      else this.#lose();
    }
  }

  #lose(): void {
    const { user } = this;
    this.free();
    user?.lost();
  }
}

const NO_OCTETS = new Uint8Array(0);
