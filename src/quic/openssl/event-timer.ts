/** Calls OpenSSL at the time of its next event. */
import type { OpenSsl, Pointer } from "./library.ts";

export class EventTimer {
  readonly #ssl: OpenSsl;
  readonly #of: Pointer;
  readonly #due: () => void;
  readonly #time = new Uint8Array(new ArrayBuffer(16));
  readonly #timeView = new DataView(this.#time.buffer);
  readonly #infinite = new Uint8Array(new ArrayBuffer(4));
  #timer: NodeJS.Timeout | undefined;
  #dueAt = Number.POSITIVE_INFINITY;

  constructor(ssl: OpenSsl, of: Pointer, due: () => void) {
    this.#ssl = ssl;
    this.#of = of;
    this.#due = due;
  }

  /** Reads OpenSSL's next event time. */
  set(): void {
    this.#ssl.SSL_get_event_timeout(this.#of, this.#time, this.#infinite);
    if (this.#infinite[0] !== 0) {
      this.cancel();
      return;
    }
    const seconds = Number(this.#timeView.getBigInt64(0, true));
    const wait = Math.max(1, Math.ceil(seconds * 1000 + this.#timeView.getUint32(8, true) / 1000));
    const dueAt = performance.now() + wait;
    // Often the time has hardly changed: a timer that fires a little early does no harm.
    if (this.#timer !== undefined && dueAt >= this.#dueAt && dueAt - this.#dueAt < EARLY) return;
    this.cancel();
    this.#dueAt = dueAt;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#due();
    }, wait);
  }

  cancel(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#dueAt = Number.POSITIVE_INFINITY;
  }
}

/** Milliseconds. */
const EARLY = 5;
