/** The server's connection preface (RFC 9113 sections 3.4 and 6.5). */
import type { FrameSender, SendingStream } from "./frame-sender.ts";
import { DEFAULT_WINDOW, FrameType, Setting, settingsPayload } from "./http2-frames.ts";
import { STREAM_WINDOW } from "./http2-stream.ts";
import { CONNECTION_WINDOW } from "./receive-window.ts";
import { MAX_HEADER_LIST } from "./request-head.ts";

export function greet(sender: FrameSender<SendingStream>, maxStreams: number): void {
  const settings = settingsPayload([
    [Setting.MAX_CONCURRENT_STREAMS, maxStreams],
    [Setting.INITIAL_WINDOW_SIZE, STREAM_WINDOW],
    [Setting.MAX_HEADER_LIST_SIZE, MAX_HEADER_LIST],
  ]);
  sender.writeFrame(FrameType.SETTINGS, 0, 0, settings);
  sender.writeNumber(FrameType.WINDOW_UPDATE, 0, CONNECTION_WINDOW - DEFAULT_WINDOW);
  sender.flushSoon();
}
