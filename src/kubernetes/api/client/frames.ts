/**
 * Chunks of a body -> the frames of a watch, or the whole. Chunks are copied as they come, into a buffer that is used again and again: each is
 * memory outside of V8's heap, which one that is held for longer than two young collections keeps until the next full one.
 */
import { readU32 } from "../../../dns/octets.ts";
import { ApiContentError } from "../access/api-error.ts";
import type { ObjectFormat } from "./codec.ts";

/** etcd takes no object larger than 1.5 MiB; JSON may be some times longer than what is stored. */
const MAX_FRAME_SIZE = 32 * 1024 * 1024;
/** A page of a list. A server that takes no notice of the page size sends all in one. */
const MAX_BODY_SIZE = 1024 * 1024 * 1024;
/** Octets that a buffer has at first. */
const FIRST_ROOM = 32 * 1024;
/** A watch does not keep a buffer larger than this for a rest that needs a quarter of it. */
const MOST_KEPT = 256 * 1024;

/** Octets that come at the end and go from the front. */
class OctetQueue {
  #buffer: Buffer = NO_OCTETS;
  #start = 0;
  #end = 0;

  /** What is there, valid until the next {@link add}. */
  get octets(): Buffer {
    return this.#buffer.subarray(this.#start, this.#end);
  }

  get length(): number {
    return this.#end - this.#start;
  }

  add(chunk: Uint8Array): void {
    if (this.#end + chunk.length > this.#buffer.length) this.#makeRoom(this.length + chunk.length);
    this.#buffer.set(chunk, this.#end);
    this.#end += chunk.length;
  }

  /** @returns so many octets behind those that are passed over, valid until the next {@link add} */
  take(length: number, passed = 0): Buffer {
    const start = this.#start + passed;
    this.#start = start + length;
    return this.#buffer.subarray(start, this.#start);
  }

  /** The number of four octets at the front, which must be there. */
  get number(): number {
    return readU32(this.#buffer, this.#start);
  }

  clear(): void {
    this.#start = 0;
    this.#end = 0;
  }

  /** Lets go of a buffer that is far larger than what is in it. What was taken stays valid until the next {@link add}. */
  shrink(): void {
    if (this.#buffer.length > MOST_KEPT && this.length < MOST_KEPT / 4) this.#moveTo(this.length);
  }

  #makeRoom(needed: number): void {
    if (needed > this.#buffer.length) this.#moveTo(2 * needed);
    else {
      this.#buffer.copyWithin(0, this.#start, this.#end);
      this.#end -= this.#start;
      this.#start = 0;
    }
  }

  #moveTo(room: number): void {
    const { octets } = this;
    this.#buffer = Buffer.allocUnsafeSlow(Math.max(FIRST_ROOM, room));
    this.#buffer.set(octets);
    this.#start = 0;
    this.#end = octets.length;
  }
}

const NO_OCTETS = Buffer.alloc(0);

/** Splits a watch into events: JSON by lines, protobuf by lengths of four octets. */
export class FrameSplitter {
  readonly #format: ObjectFormat;
  readonly #pending = new OctetQueue();
  /** How much of what is pending holds no end of a line. */
  #searched = 0;

  constructor(format: ObjectFormat) {
    this.#format = format;
  }

  /** @returns the frames that are complete now, valid until the next chunk @throws ApiContentError for one that is too long */
  push(chunk: Uint8Array): Uint8Array[] {
    this.#pending.add(chunk);
    const frames: Uint8Array[] = [];
    for (let frame = this.#next(); frame !== undefined; frame = this.#next()) {
      if (frame.length > 0) frames.push(frame);
    }
    this.#pending.shrink();
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
    const end = this.#pending.octets.indexOf(0x0a, this.#searched);
    if (end < 0) {
      this.#searched = this.#pending.length;
      this.#requireSize(this.#pending.length);
      return undefined;
    }
    this.#searched = 0;
    return this.#pending.take(end + 1).subarray(0, end);
  }

  #nextLengthPrefixed(): Uint8Array | undefined {
    const pending = this.#pending;
    if (pending.length < 4) return undefined;
    const length = pending.number;
    this.#requireSize(length);
    if (pending.length < 4 + length) return undefined;
    return pending.take(length, 4);
  }

  #requireSize(size: number): void {
    if (size > MAX_FRAME_SIZE)
      throw new ApiContentError(`an event of the watch is larger than ${MAX_FRAME_SIZE} octets`);
  }
}

/** Reads bodies one after the other into the same memory. */
export class BodyReader {
  #queue = new OctetQueue();

  /**
   * The whole of a body, valid until the next one is read.
   * @throws ApiContentError where it is too long
   */
  async read(body: AsyncIterable<Uint8Array>, maxSize: number = MAX_BODY_SIZE): Promise<Uint8Array> {
    const queue = this.#queue;
    queue.clear();
    for await (const chunk of body) {
      if (queue.length + chunk.length > maxSize)
        throw new ApiContentError(`the answer is larger than ${maxSize} octets`);
      queue.add(chunk);
    }
    return queue.octets;
  }

  /** Releases the memory: call it when no more frames are read for now. */
  release(): void {
    this.#queue = new OctetQueue();
  }
}

/** The whole of a body. @throws ApiContentError where it is too long */
export function readWhole(body: AsyncIterable<Uint8Array>, maxSize?: number): Promise<Uint8Array> {
  return new BodyReader().read(body, maxSize);
}
