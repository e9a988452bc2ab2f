/**
 * Parses the data of an HTTP/2 client: the preface, frames in chunks of any size, header blocks of several frames (RFC 9113 section
 * 4).
 */
import { copyOctets, readU32 } from "../../dns/octets.ts";
import { MAX_BLOCK } from "./hpack-decoder.ts";
import {
  ErrorCode,
  type ErrorCodeNumber,
  FRAME_HEAD,
  FrameFlag,
  FrameType,
  MAX_FRAME,
  MAX_WINDOW,
  PREFACE,
} from "./http2-frames.ts";

/** Receives the content of frames. All octets are lent. */
export interface FrameUser {
  /** Whether parsing is suspended. */
  readonly isBusy: boolean;
  /**
   * @param dependency the stream that it depends on (RFC 7540 section 5.3.1), 0 without one
   * @param octets header block, from `start` to `end`
   */
  header(
    id: number,
    isLast: boolean,
    dependency: number,
    octets: Uint8Array,
    start: number,
    end: number,
  ): void;
  /** @param length of the frame, padding included */
  data(id: number, isLast: boolean, octets: Uint8Array, length: number): void;
  /** Any other frame. */
  control(type: number, flags: number, id: number, payload: Uint8Array): void;
  /** The data has invalid frames, or valid ones in a wrong order. */
  fail(code: ErrorCodeNumber): void;
}

const MAX_BLOCK_FRAMES = 16;
const NO_OCTETS = new Uint8Array(0);

export class FrameIntake {
  readonly #user: FrameUser;
  /** An incomplete frame. */
  #pending: Uint8Array = NO_OCTETS;
  #hasPreface = false;
  #hasSettings = false;
  #isBroken = false;
  /** Stream of a header block that continues in the next frame, 0 for none. */
  #blockStream = 0;
  #blockIsLast = false;
  #blockDependency = 0;
  #block: Uint8Array[] = [];
  #blockOctets = 0;

  constructor(user: FrameUser) {
    this.#user = user;
  }

  /** Octets received but not yet parsed. */
  get pending(): number {
    return this.#pending.length + this.#blockOctets;
  }

  /** Parses new data, and data left while the user was busy. */
  take(data: Uint8Array): void {
    const octets = this.#pending.length === 0 ? data : Buffer.concat([this.#pending, data]);
    let at = 0;
    if (!this.#hasPreface) {
      if (!beginsWithPreface(octets)) {
        this.#fail(ErrorCode.PROTOCOL_ERROR);
        return;
      }
      if (octets.length < PREFACE.length) {
        this.#pending = copyOctets(octets, 0, octets.length);
        return;
      }
      this.#hasPreface = true;
      at = PREFACE.length;
    }
    while (octets.length - at >= FRAME_HEAD && !this.#user.isBusy && !this.#isBroken) {
      const length = readU32(octets, at) >>> 8;
      if (length > MAX_FRAME) {
        this.#fail(ErrorCode.FRAME_SIZE_ERROR);
        break;
      }
      const start = at + FRAME_HEAD;
      if (octets.length < start + length) break;
      const id = readU32(octets, at + 5) & MAX_WINDOW;
      this.#frame(octets[at + 3] as number, octets[at + 4] as number, id, octets, start, start + length);
      at = start + length;
    }
    // The rest is copied, so that it does not keep a large chunk alive.
    if (this.#isBroken || at === octets.length) this.#pending = NO_OCTETS;
    else this.#pending = at === 0 && data !== octets ? octets : copyOctets(octets, at, octets.length);
  }

  #frame(type: number, flags: number, id: number, octets: Uint8Array, start: number, end: number): void {
    if (this.#blockStream !== 0 && (type !== FrameType.CONTINUATION || id !== this.#blockStream)) {
      this.#fail(ErrorCode.PROTOCOL_ERROR);
      return;
    }
    const isLast = (flags & FrameFlag.END_STREAM) !== 0;
    let from = start;
    let to = end;
    if ((type === FrameType.DATA || type === FrameType.HEADERS) && (flags & FrameFlag.PADDED) !== 0) {
      // A frame without the octet for the padding length has no padding.
      to -= start === end ? 1 : (octets[start] as number);
      from++;
    }
    let dependency = 0;
    if (type === FrameType.HEADERS && (flags & FrameFlag.PRIORITY) !== 0) {
      if (from + 5 <= to) dependency = readU32(octets, from) & MAX_WINDOW;
      from += 5;
    }
    const isSettings = type === FrameType.SETTINGS && (flags & FrameFlag.ACK) === 0;
    if (from > to || (!this.#hasSettings && !isSettings)) {
      this.#fail(ErrorCode.PROTOCOL_ERROR);
      return;
    }
    this.#hasSettings = true;
    if (type === FrameType.DATA) this.#user.data(id, isLast, octets.subarray(from, to), end - start);
    else if (type === FrameType.HEADERS && (flags & FrameFlag.END_HEADERS) !== 0 && id !== 0)
      this.#user.header(id, isLast, dependency, octets, from, to);
    else if (type === FrameType.HEADERS) {
      this.#blockStream = id;
      this.#blockIsLast = isLast;
      this.#blockDependency = dependency;
      this.#continueBlock(copyOctets(octets, from, to), false);
    } else if (type === FrameType.CONTINUATION)
      this.#continueBlock(copyOctets(octets, from, to), (flags & FrameFlag.END_HEADERS) !== 0);
    else this.#user.control(type, flags, id, octets.subarray(start, end));
  }

  #continueBlock(octets: Uint8Array, isWhole: boolean): void {
    const id = this.#blockStream;
    if (id === 0) {
      this.#fail(ErrorCode.PROTOCOL_ERROR);
      return;
    }
    this.#block.push(octets);
    this.#blockOctets += octets.length;
    if (this.#blockOctets > MAX_BLOCK || this.#block.length > MAX_BLOCK_FRAMES) {
      this.#fail(ErrorCode.ENHANCE_YOUR_CALM);
      return;
    }
    if (!isWhole) return;
    const block = Buffer.concat(this.#block);
    this.#block = [];
    this.#blockOctets = 0;
    this.#blockStream = 0;
    this.#user.header(id, this.#blockIsLast, this.#blockDependency, block, 0, block.length);
  }

  #fail(code: ErrorCodeNumber): void {
    this.#isBroken = true;
    this.#block = [];
    this.#pending = NO_OCTETS;
    this.#user.fail(code);
  }
}

function beginsWithPreface(octets: Uint8Array): boolean {
  const length = Math.min(octets.length, PREFACE.length);
  for (let at = 0; at < length; at++) if (octets[at] !== PREFACE[at]) return false;
  return true;
}
