import type { Clock } from "../../lib/time/clock.ts";
import { SharedTurns } from "../../lib/time/turn-share.ts";
import type { HttpObserver, HttpTimeouts } from "../http-options.ts";
import { OutputSlab } from "./gathered-output.ts";
import { hpackScratch } from "./hpack-decoder.ts";
import type { Http2Stream, StreamHome } from "./http2-stream.ts";
import { RequestHead } from "./request-head.ts";

export interface Http2Options extends HttpObserver {
  readonly clock: Clock;
  /** Called for each connection. */
  readonly maxStreams: () => number;
  readonly timeouts: () => HttpTimeouts;
  /** Whether each response has its own write. */
  readonly separateResponses?: boolean;
  /** Makes the stream for a request. */
  readonly open: (home: StreamHome, id: number) => Http2Stream;
}

/** Milliseconds of an event-loop turn for processing frames. */
const SHARE = 1;

/** Shared by all sessions of a listener: their time, and scratch memory. */
export class SharedBySessions {
  readonly options: Http2Options;
  readonly slab = new OutputSlab();
  readonly scratch = hpackScratch();
  readonly head = new RequestHead();
  /** Their time in a turn of the event loop. */
  readonly turns: SharedTurns;

  constructor(options: Http2Options) {
    this.options = options;
    this.turns = new SharedTurns(options.clock, SHARE);
  }
}
