/** One Frame Streams connection on which this side sends the data: READY, ACCEPT, START, data, STOP, FINISH. */
import type { Socket } from "node:net";
import type { Clock, Timer } from "../../plugin/index.ts";

const CONTENT_TYPE = Buffer.from("protobuf:dnstap.Dnstap");
const Kind = { ACCEPT: 1, START: 2, STOP: 3, READY: 4, FINISH: 5 } as const;
/** A longer control frame is invalid. */
const MAX_CONTROL = 512;

export interface FrameStreamOptions {
  /** Bound for the bytes that wait in the socket. */
  readonly writeBuffer: () => number;
  readonly clock: Clock;
  /** Called once when the connection has ended. */
  readonly onEnd: (stream: FrameStream) => void;
}

export class FrameStream {
  readonly #socket: Socket;
  readonly #options: FrameStreamOptions;
  readonly #closed: Promise<void>;
  #timer: Timer;
  #received: Buffer = Buffer.alloc(0);
  #isOpen = false;
  #openedAt = Number.POSITIVE_INFINITY;
  #isEnding = false;
  #failure: string | undefined = "it closed the connection before accepting data";

  /** @param socket connected */
  constructor(socket: Socket, options: FrameStreamOptions) {
    this.#socket = socket;
    this.#options = options;
    // A silent connection would take a place that others need.
    this.#timer = options.clock.after(HANDSHAKE_PATIENCE, () =>
      this.#fail(`it does not answer within ${HANDSHAKE_PATIENCE / 1000} s`),
    );
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("error", () => socket.destroy());
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#closed = promise;
    socket.once("close", () => {
      this.#isOpen = false;
      this.#timer.cancel();
      options.onEnd(this);
      resolve();
    });
    socket.write(control(Kind.READY));
  }

  /** Whether the reader accepts data now. */
  get takesData(): boolean {
    return this.#isOpen && !this.#isEnding && this.#socket.writableLength < this.#options.writeBuffer();
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /**
   * Why the reader never got data, or was disconnected, set when the connection has ended; `undefined` after an
   * orderly end.
   */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** Milliseconds since the reader first accepted data; negative if it never did. */
  get age(): number {
    return this.#options.clock.now() - this.#openedAt;
  }

  send(frames: Uint8Array): void {
    this.#socket.write(frames);
  }

  /**
   * Sends STOP, and closes when the reader has confirmed it: closing earlier may discard data that it has not read.
   * Resolves when the connection has ended.
   */
  end(): Promise<void> {
    this.#isEnding = true;
    if (this.#isOpen) this.#socket.write(control(Kind.STOP));
    else this.#socket.destroy();
    this.#timer.cancel();
    this.#timer = this.#options.clock.after(END_PATIENCE, () => this.#socket.destroy());
    return this.#closed;
  }

  #fail(reason: string): void {
    this.#failure = reason;
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    while (this.#received.length >= 8) {
      const length = this.#received.readUInt32BE(4);
      // The reader sends no data, so each frame is a control frame: a length of zero, then its own length.
      if (this.#received.readUInt32BE(0) !== 0 || length < 4 || length > MAX_CONTROL) {
        this.#fail("it does not speak Frame Streams");
        return;
      }
      if (this.#received.length < 8 + length) return;
      const kind = this.#received.readUInt32BE(8);
      const fields = this.#received.subarray(12, 8 + length);
      this.#received = this.#received.subarray(8 + length);
      if (kind === Kind.ACCEPT && !this.#isOpen) {
        if (!acceptsType(fields)) {
          this.#fail(`it does not accept ${CONTENT_TYPE.toString()}`);
          return;
        }
        this.#timer.cancel();
        this.#socket.write(control(Kind.START));
        this.#isOpen = true;
        this.#openedAt = this.#options.clock.now();
        this.#failure = undefined;
      } else if (kind === Kind.FINISH) this.#socket.end();
      else {
        // No other frame is valid here, and a peer could send them without end.
        this.#fail(`it sends a control frame of type ${kind}, which is unexpected here`);
        return;
      }
    }
  }
}

/** Milliseconds. */
const HANDSHAKE_PATIENCE = 5_000;
const END_PATIENCE = 1_000;

const CONTENT_TYPE_FIELD = 1;

/** Whether the peer accepts the content type; a peer that names no type accepts all. */
function acceptsType(fields: Buffer): boolean {
  if (fields.length === 0) return true;
  for (let at = 0; at + 8 <= fields.length; ) {
    const length = fields.readUInt32BE(at + 4);
    const value = fields.subarray(at + 8, at + 8 + length);
    if (fields.readUInt32BE(at) === CONTENT_TYPE_FIELD && value.equals(CONTENT_TYPE)) return true;
    at += 8 + length;
  }
  return false;
}

function control(kind: number): Buffer {
  const hasType = kind === Kind.READY || kind === Kind.START;
  const length = 4 + (hasType ? 8 + CONTENT_TYPE.length : 0);
  const frame = Buffer.alloc(8 + length);
  frame.writeUInt32BE(length, 4);
  frame.writeUInt32BE(kind, 8);
  if (!hasType) return frame;
  frame.writeUInt32BE(1, 12);
  frame.writeUInt32BE(CONTENT_TYPE.length, 16);
  CONTENT_TYPE.copy(frame, 20);
  return frame;
}
