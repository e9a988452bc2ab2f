/** One connection of Frame Streams, of which this side sends the data: READY, ACCEPT, START, data, STOP, FINISH. */
import type { Socket } from "node:net";

const CONTENT_TYPE = Buffer.from("protobuf:dnstap.Dnstap");
const Kind = { ACCEPT: 1, START: 2, STOP: 3, READY: 4, FINISH: 5 } as const;
/** A control frame that is longer is none. */
const MAX_CONTROL = 512;

export class FrameStream {
  readonly #socket: Socket;
  readonly #writeBuffer: number;
  #received: Buffer = Buffer.alloc(0);
  #isOpen = false;
  #isEnding = false;

  /**
   * @param socket connected
   * @param onEnd called once when the connection is no more
   */
  constructor(socket: Socket, writeBuffer: number, onEnd: (stream: FrameStream) => void) {
    this.#socket = socket;
    this.#writeBuffer = writeBuffer;
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("error", () => socket.destroy());
    socket.once("close", () => {
      this.#isOpen = false;
      onEnd(this);
    });
    socket.write(control(Kind.READY));
  }

  /** Whether the other side wants data now. */
  get takesData(): boolean {
    return this.#isOpen && !this.#isEnding && this.#socket.writableLength < this.#writeBuffer;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  send(frames: Uint8Array): void {
    this.#socket.write(frames);
  }

  /** Says that nothing comes any more, and closes when the other side has heard it. */
  end(): void {
    this.#isEnding = true;
    if (this.#isOpen) this.#socket.write(control(Kind.STOP));
    else this.#socket.destroy();
    setTimeout(() => this.#socket.destroy(), END_PATIENCE).unref();
  }

  #receive(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    while (this.#received.length >= 8) {
      const length = this.#received.readUInt32BE(4);
      // The other side sends no data, so a frame is a control frame: no length, then its own.
      if (this.#received.readUInt32BE(0) !== 0 || length < 4 || length > MAX_CONTROL) {
        this.#socket.destroy();
        return;
      }
      if (this.#received.length < 8 + length) return;
      const kind = this.#received.readUInt32BE(8);
      this.#received = this.#received.subarray(8 + length);
      if (kind === Kind.ACCEPT && !this.#isOpen) {
        this.#socket.write(control(Kind.START));
        this.#isOpen = true;
      } else if (kind === Kind.FINISH) this.#socket.end();
    }
  }
}

const END_PATIENCE = 1_000;

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
