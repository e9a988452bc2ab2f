/** Frames that belong to no request (RFC 9113 section 6): their lengths, and the streams on which they may come. */
import { ErrorCode, type ErrorCodeNumber, FrameFlag, FrameType, SETTING_OCTETS } from "./http2-frames.ts";

/** Payload length of types with a fixed one. */
const LENGTHS: Readonly<Record<number, number>> = {
  [FrameType.PRIORITY]: 5,
  [FrameType.RST_STREAM]: 4,
  [FrameType.PING]: 8,
  [FrameType.WINDOW_UPDATE]: 4,
};
const OF_CONNECTION: ReadonlySet<number> = new Set([FrameType.SETTINGS, FrameType.PING, FrameType.GOAWAY]);
const OF_STREAM: ReadonlySet<number> = new Set([FrameType.PRIORITY, FrameType.RST_STREAM]);

/** @returns the error code if such a frame ends the connection, whatever its payload */
export function frameFault(
  type: number,
  flags: number,
  id: number,
  length: number,
): ErrorCodeNumber | undefined {
  const isOnWrongStream = id === 0 ? OF_STREAM.has(type) : OF_CONNECTION.has(type);
  // A client cannot push.
  if (isOnWrongStream || type === FrameType.PUSH_PROMISE) return ErrorCode.PROTOCOL_ERROR;
  if (type === FrameType.SETTINGS) {
    const isRightLength = (flags & FrameFlag.ACK) === 0 ? length % SETTING_OCTETS === 0 : length === 0;
    return isRightLength ? undefined : ErrorCode.FRAME_SIZE_ERROR;
  }
  if (type === FrameType.GOAWAY && length < 8) return ErrorCode.FRAME_SIZE_ERROR;
  const only = LENGTHS[type];
  return only === undefined || only === length ? undefined : ErrorCode.FRAME_SIZE_ERROR;
}
