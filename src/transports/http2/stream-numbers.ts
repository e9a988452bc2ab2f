/**
 * The stream numbers that a client has used, and enough closed ones to distinguish a late frame from an invalid one (RFC 9113
 * section 5.1).
 */
import { ErrorCode, type ErrorCodeNumber } from "./http2-frames.ts";

/** More resets in a row exhaust the patience for the client. */
const MAX_RESETS = 1024;
/** Clients usually skip no stream numbers. */
const MAX_GAPS = 8;

export class StreamNumbers {
  /** The last request that was started, and the last one refused after GOAWAY. */
  #last = 0;
  #lastPassedOver = 0;
  /** Streams that we reset before the client had ended them, oldest first: the client may have sent more on them. */
  readonly #resets: number[] = [];
  /** Ranges of numbers that the client skipped, oldest first. */
  readonly #gaps: (readonly [first: number, last: number])[] = [];

  /** The last request that was started. */
  get last(): number {
    return this.#last;
  }

  /** Number of remembered streams and gaps. */
  get size(): number {
    return this.#resets.length + this.#gaps.length;
  }

  /** The client starts a request. Skipped numbers can no longer be used (RFC 9113 section 5.1.1). @param id above {@link last} */
  begin(id: number): void {
    const next = this.#last === 0 ? 1 : this.#last + 2;
    this.#last = id;
    if (id === next) return;
    if (this.#gaps.length === MAX_GAPS) this.#gaps.shift();
    this.#gaps.push([next, id - 2]);
  }

  /** The client starts a request after GOAWAY, and will retry elsewhere. @param id above {@link last} */
  passOver(id: number): void {
    if (id > this.#lastPassedOver) this.#lastPassedOver = id;
  }

  /** We reset a stream that the client has not ended. */
  reset(id: number): void {
    if (this.#resets.length === MAX_RESETS) this.#resets.shift();
    this.#resets.push(id);
  }

  /** The client has ended a stream, and may send nothing more on it. */
  end(id: number): void {
    const at = this.#resets.indexOf(id);
    if (at >= 0) this.#resets.splice(at, 1);
  }

  /** Whether this number has not been used yet. */
  isIdle(id: number): boolean {
    return id > Math.max(this.#last, this.#lastPassedOver) || id % 2 === 0;
  }

  /**
   * The error for a part of a request on a stream that is not open.
   * @returns `undefined` if the client could not know: its stream was reset or refused
   */
  faultOf(id: number): ErrorCodeNumber | undefined {
    if (this.isIdle(id)) return ErrorCode.PROTOCOL_ERROR;
    if (id > this.#last || this.#resets.includes(id)) return undefined;
    const isLeftOut = this.#gaps.some(([first, last]) => first <= id && id <= last);
    return isLeftOut ? ErrorCode.PROTOCOL_ERROR : ErrorCode.STREAM_CLOSED;
  }
}
