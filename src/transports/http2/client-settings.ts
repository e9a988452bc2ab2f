/** Reads a client's SETTINGS frame (RFC 9113 section 6.5). */
import { readU16, readU32 } from "../../dns/octets.ts";
import { ErrorCode, type ErrorCodeNumber, MAX_WINDOW, SETTING_OCTETS, Setting } from "./http2-frames.ts";

/** There are six settings; a frame may repeat each of them. */
const MAX_SETTINGS = 64;

/**
 * The only setting that matters here: the initial window of streams.
 * @param payload whole settings
 * @param window the previous value
 */
export function readStreamWindow(
  payload: Uint8Array,
  window: number,
): { readonly window: number } | { readonly fault: ErrorCodeNumber } {
  if (payload.length > MAX_SETTINGS * SETTING_OCTETS) return { fault: ErrorCode.ENHANCE_YOUR_CALM };
  let said = window;
  for (let at = 0; at < payload.length; at += SETTING_OCTETS) {
    const value = readU32(payload, at + 2);
    switch (readU16(payload, at)) {
      case Setting.ENABLE_PUSH:
        if (value > 1) return { fault: ErrorCode.PROTOCOL_ERROR };
        break;
      case Setting.INITIAL_WINDOW_SIZE:
        if (value > MAX_WINDOW) return { fault: ErrorCode.FLOW_CONTROL_ERROR };
        said = value;
        break;
      case Setting.MAX_FRAME_SIZE:
        if (value < 0x4000 || value > 0xff_ffff) return { fault: ErrorCode.PROTOCOL_ERROR };
    }
  }
  return { window: said };
}
