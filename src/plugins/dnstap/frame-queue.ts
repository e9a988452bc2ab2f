/**
 * Frames that wait to be sent, as bytes in one buffer of bounded size. Frames that do not fit are dropped and
 * counted.
 */

const FIRST_SIZE = 64 * 1024;
const MAX_SIZE = 32 * 1024 * 1024;

export class FrameQueue {
  readonly #maxFrames: number;
  #octets = new Uint8Array(FIRST_SIZE);
  #end = 0;
  #frames = 0;

  constructor(maxFrames: number) {
    this.#maxFrames = maxFrames;
  }

  get length(): number {
    return this.#end;
  }

  get frames(): number {
    return this.#frames;
  }

  /**
   * Adds a data frame (Frame Streams: its length in four octets, then its data). @returns false if there is no room
   * for it
   */
  add(frame: Uint8Array, length: number): boolean {
    const needed = this.#end + 4 + length;
    if (this.#frames >= this.#maxFrames || needed > MAX_SIZE) {
      return false;
    }
    if (needed > this.#octets.length) {
      const larger = new Uint8Array(Math.min(MAX_SIZE, Math.max(needed, 2 * this.#octets.length)));
      larger.set(this.#octets.subarray(0, this.#end));
      this.#octets = larger;
    }
    new DataView(this.#octets.buffer).setUint32(this.#end, length);
    this.#octets.set(frame.subarray(0, length), this.#end + 4);
    this.#end = needed;
    this.#frames++;
    return true;
  }

  /** Removes and returns all waiting frames. */
  take(): Uint8Array {
    const taken = this.#octets.slice(0, this.#end);
    this.#end = 0;
    this.#frames = 0;
    return taken;
  }
}
