/** Chunks of a body -> the frames of a watch, or the whole. */
import { ApiContentError } from "./api-error.ts";
import type { Format } from "./codec.ts";

/** etcd takes no object larger than 1.5 MiB; JSON may be some times longer than what is stored. */
const MAX_FRAME_SIZE = 32 * 1024 * 1024;
/** A page of a list. A server that takes no notice of the page size sends all in one. */
const MAX_BODY_SIZE = 1024 * 1024 * 1024;

/** Splits a watch into events: JSON by lines, protobuf by lengths of four octets. */
export class FrameSplitter {
  readonly #format: Format;
  #pending: Buffer = Buffer.alloc(0);
  /** How much of what is pending holds no end of a line. */
  #searched = 0;

  constructor(format: Format) {
    this.#format = format;
  }

  /** @returns the frames that are complete now @throws ApiContentError for one that is too long */
  push(chunk: Uint8Array): Uint8Array[] {
    const octets = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    this.#pending = this.#pending.length === 0 ? octets : Buffer.concat([this.#pending, octets]);
    const frames: Uint8Array[] = [];
    for (let frame = this.#next(); frame !== undefined; frame = this.#next()) {
      if (frame.length > 0) frames.push(frame);
    }
    // A small rest must not hold on to the large chunk that it came in.
    if (this.#pending.length < octets.length) this.#pending = Buffer.from(this.#pending);
    return frames;
  }

  /** Whether the body ended in the middle of a frame. */
  get isIncomplete(): boolean {
    return this.#pending.length > 0;
  }

  #next(): Uint8Array | undefined {
    return this.#format === "json" ? this.#nextLine() : this.#nextLengthPrefixed();
  }

  #nextLine(): Uint8Array | undefined {
    const end = this.#pending.indexOf(0x0a, this.#searched);
    if (end < 0) {
      this.#searched = this.#pending.length;
      this.#requireSize(this.#pending.length);
      return undefined;
    }
    const line = this.#pending.subarray(0, end);
    this.#pending = this.#pending.subarray(end + 1);
    this.#searched = 0;
    return line;
  }

  #nextLengthPrefixed(): Uint8Array | undefined {
    if (this.#pending.length < 4) return undefined;
    const length = this.#pending.readUInt32BE(0);
    this.#requireSize(length);
    if (this.#pending.length < 4 + length) return undefined;
    const frame = this.#pending.subarray(4, 4 + length);
    this.#pending = this.#pending.subarray(4 + length);
    return frame;
  }

  #requireSize(size: number): void {
    if (size > MAX_FRAME_SIZE)
      throw new ApiContentError(`an event of the watch is larger than ${MAX_FRAME_SIZE} octets`);
  }
}

/** The whole of a body. @throws ApiContentError where it is too long */
export async function readWhole(
  body: AsyncIterable<Uint8Array>,
  maxSize: number = MAX_BODY_SIZE,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxSize) throw new ApiContentError(`the answer is larger than ${maxSize} octets`);
    chunks.push(chunk);
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
}
