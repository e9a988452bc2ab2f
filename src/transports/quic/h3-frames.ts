/** Frames of HTTP/3 (RFC 9114 section 7), and their integers (RFC 9000 section 16). */

export const H3Frame = {
  DATA: 0,
  HEADERS: 1,
  CANCEL_PUSH: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  GOAWAY: 7,
  MAX_PUSH_ID: 13,
} as const;

/** Frame types of HTTP/2 that are errors here (RFC 9114 section 7.2.8). */
export const H2_FRAMES: ReadonlySet<number> = new Set([2, 6, 8, 9]);

/** RFC 9114 section 8.1, RFC 9204 section 6. */
export const H3Code = {
  NO_ERROR: 0x100,
  GENERAL_PROTOCOL_ERROR: 0x101,
  INTERNAL_ERROR: 0x102,
  STREAM_CREATION_ERROR: 0x103,
  CLOSED_CRITICAL_STREAM: 0x104,
  FRAME_UNEXPECTED: 0x105,
  FRAME_ERROR: 0x106,
  EXCESSIVE_LOAD: 0x107,
  ID_ERROR: 0x108,
  SETTINGS_ERROR: 0x109,
  MISSING_SETTINGS: 0x10a,
  REQUEST_INCOMPLETE: 0x10d,
  MESSAGE_ERROR: 0x10e,
  DECOMPRESSION_FAILED: 0x200,
  ENCODER_STREAM_ERROR: 0x201,
  DECODER_STREAM_ERROR: 0x202,
} as const;

/** Receives the content of frames. Payloads arrive in pieces. */
export interface Http3FrameUser {
  /** @returns false to stop */
  begin(type: number, length: number): boolean;
  payload(octets: Uint8Array, isEnd: boolean): boolean;
}

/** Splits a stream into frames, whatever pieces it arrives in. */
export class Http3FrameReader {
  readonly #user: Http3FrameUser;
  #head = new Uint8Array(16);
  #headLength = 0;
  #left = 0;
  #isInPayload = false;

  constructor(user: Http3FrameUser) {
    this.#user = user;
  }

  /** Whether a stream may end here. */
  get isBetweenFrames(): boolean {
    return this.#headLength === 0 && !this.#isInPayload;
  }

  take(octets: Uint8Array): void {
    let at = 0;
    while (at < octets.length) {
      if (this.#isInPayload) {
        const end = Math.min(octets.length, at + this.#left);
        this.#left -= end - at;
        this.#isInPayload = this.#left > 0;
        if (!this.#user.payload(octets.subarray(at, end), !this.#isInPayload)) return;
        at = end;
        continue;
      }
      this.#head[this.#headLength++] = octets[at++] as number;
      const head = this.#head.subarray(0, this.#headLength);
      const type = readVarint(head, 0);
      const length = type === undefined ? undefined : readVarint(head, varintLength(head[0] as number));
      if (type === undefined || length === undefined) continue;
      this.#headLength = 0;
      this.#left = length;
      this.#isInPayload = length > 0;
      if (!this.#user.begin(type, length)) return;
      if (length === 0 && !this.#user.payload(NO_OCTETS, true)) return;
    }
  }
}

const NO_OCTETS = new Uint8Array(0);

export function varintLength(first: number): number {
  return 1 << (first >> 6);
}

/** @returns `undefined` if it is incomplete */
export function readVarint(octets: Uint8Array, at: number): number | undefined {
  const first = octets[at];
  if (first === undefined || at + varintLength(first) > octets.length) return undefined;
  let value = first & 0x3f;
  for (let index = 1; index < varintLength(first); index++)
    value = value * 256 + (octets[at + index] as number);
  return value;
}

/** @param value below 2^30 */
export function varint(value: number): number[] {
  if (value < 0x40) return [value];
  if (value < 0x4000) return [0x40 | (value >> 8), value & 0xff];
  return [0x80 | (value >>> 24), (value >> 16) & 0xff, (value >> 8) & 0xff, value & 0xff];
}

export function frame(type: number, payload: Uint8Array): Buffer {
  return Buffer.concat([Uint8Array.from([...varint(type), ...varint(payload.length)]), payload]);
}
