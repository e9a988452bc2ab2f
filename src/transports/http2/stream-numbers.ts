/** The numbers of streams that a client has used, and enough of those that are closed to tell a late frame from a wrong one (RFC 9113 section 5.1). */
import { ErrorCode, type ErrorCodeNumber } from "./http2-frames.ts";

/** A client that has so many streams reset in a row has used up its patience. */
const MAX_RESETS = 1024;
/** Clients usually leave out no stream at all. */
const MAX_GAPS = 8;

export class StreamNumbers {
  /** The last request that was begun, and the last of those that came too late for that. */
  #last = 0;
  #lastPassedOver = 0;
  /** Streams that we reset before the client had ended them, the oldest first: it may have sent more on them meanwhile. */
  readonly #resets: number[] = [];
  /** The first and the last of streams that the client left out when it began a later one, the oldest gap first. */
  readonly #gaps: (readonly [first: number, last: number])[] = [];

  /** The last request that was begun. */
  get last(): number {
    return this.#last;
  }

  /** How many streams and gaps it remembers. */
  get size(): number {
    return this.#resets.length + this.#gaps.length;
  }

  /** The client begins a request. Streams that it left out can no longer be opened (RFC 9113 section 5.1.1). @param id above {@link last} */
  begin(id: number): void {
    const next = this.#last === 0 ? 1 : this.#last + 2;
    this.#last = id;
    if (id === next) return;
    if (this.#gaps.length === MAX_GAPS) this.#gaps.shift();
    this.#gaps.push([next, id - 2]);
  }

  /** The client begins a request after the goodbye, and asks elsewhere once it has read that. @param id above {@link last} */
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

  /** Whether no stream of this number was there yet. */
  isIdle(id: number): boolean {
    return id > Math.max(this.#last, this.#lastPassedOver) || id % 2 === 0;
  }

  /**
   * Why a part of a request may not come on a stream that is not open.
   * @returns `undefined` where the client could not know better: its stream was reset or passed over
   */
  faultOf(id: number): ErrorCodeNumber | undefined {
    if (this.isIdle(id)) return ErrorCode.PROTOCOL_ERROR;
    if (id > this.#last || this.#resets.includes(id)) return undefined;
    const isLeftOut = this.#gaps.some(([first, last]) => first <= id && id <= last);
    return isLeftOut ? ErrorCode.PROTOCOL_ERROR : ErrorCode.STREAM_CLOSED;
  }
}
