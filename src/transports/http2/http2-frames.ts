/** Frames of HTTP/2 (RFC 9113): types, flags, codes, and their encoding. */

export const FRAME_HEAD = 9;
/** Maximum payload that each side accepts by default (RFC 9113 section 4.2). We neither allow nor send more. */
export const MAX_FRAME = 16_384;
export const MAX_WINDOW = 0x7fff_ffff;
/** Initial size of each window. */
export const DEFAULT_WINDOW = 65_535;
export const PREFACE: Uint8Array = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

export const FrameType = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

export const FrameFlag = { ACK: 1, END_STREAM: 1, END_HEADERS: 4, PADDED: 8, PRIORITY: 0x20 } as const;

export const Setting = {
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
  MAX_HEADER_LIST_SIZE: 6,
} as const;
export const SETTING_OCTETS = 6;

/** Reasons for the end of a stream or a connection (RFC 9113 section 7). */
export const ErrorCode = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  ENHANCE_YOUR_CALM: 11,
} as const;

export type ErrorCodeNumber = (typeof ErrorCode)[keyof typeof ErrorCode];

/** @returns where the payload begins */
export function writeFrameHead(
  out: Uint8Array,
  at: number,
  length: number,
  type: number,
  flags: number,
  stream: number,
): number {
  out[at] = length >>> 16;
  out[at + 1] = length >>> 8;
  out[at + 2] = length;
  out[at + 3] = type;
  out[at + 4] = flags;
  out[at + 5] = stream >>> 24;
  out[at + 6] = stream >>> 16;
  out[at + 7] = stream >>> 8;
  out[at + 8] = stream;
  return at + FRAME_HEAD;
}

/** The payload of a SETTINGS frame. */
export function settingsPayload(settings: readonly (readonly [id: number, value: number])[]): Uint8Array {
  const payload = Buffer.alloc(settings.length * SETTING_OCTETS);
  for (const [index, [id, value]] of settings.entries()) {
    payload.writeUInt16BE(id, index * SETTING_OCTETS);
    payload.writeUInt32BE(value, index * SETTING_OCTETS + 2);
  }
  return payload;
}
