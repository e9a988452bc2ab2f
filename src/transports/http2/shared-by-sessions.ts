import type { Clock } from "../../lib/time/clock.ts";
import { SharedTurns } from "../../lib/time/turn-share.ts";
import type { HttpObserver, HttpTimeouts } from "../http-options.ts";
import { OutputSlab } from "./gathered-output.ts";
import { hpackScratch } from "./hpack-decoder.ts";
import type { Http2Stream, StreamHome } from "./http2-stream.ts";
import { RequestHead } from "./request-head.ts";

export interface Http2Options extends HttpObserver {
  readonly clock: Clock;
  /** Asked anew for each connection. */
  readonly maxStreams: () => number;
  readonly timeouts: () => HttpTimeouts;
  /** Each response leaves in a write of its own. */
  readonly separateResponses?: boolean;
  /** Makes what answers one request. */
  readonly open: (home: StreamHome, id: number) => Http2Stream;
}

/** Milliseconds of a turn of the event loop in which frames are taken. */
const SHARE = 1;

/** What all sessions of a listener share: their time, and memory that is of use only for as long as one of them does something. */
export class SharedBySessions {
  readonly options: Http2Options;
  readonly slab = new OutputSlab();
  readonly scratch = hpackScratch();
  readonly head = new RequestHead();
  /** What they may do in a turn of the event loop together. */
  readonly turns: SharedTurns;

  constructor(options: Http2Options) {
    this.options = options;
    this.turns = new SharedTurns(options.clock, SHARE);
  }
}
