/** How often and how many at once: `apiserver_qps`, `apiserver_burst`, `apiserver_max_inflight` (src/plugins/kubernetes/README.md). */
import type { Clock, Timer } from "../../../lib/time/clock.ts";

export interface RequestLimits {
  /** Requests a second on average; 0 for the usual 5. */
  readonly qps: number;
  /** Requests that may be made at once after a pause; 0 for the usual 10. */
  readonly burst: number;
  /** Requests that may wait for their response headers; 0 for any number. */
  readonly maxInflight: number;
}

const DEFAULT_QPS = 5;
const DEFAULT_BURST = 10;

export class RequestLimiter {
  readonly #clock: Clock;
  readonly #qps: number;
  readonly #burst: number;
  readonly #maxInflight: number;
  readonly #waiting: Waiter[] = [];
  #tokens: number;
  #refilledAt: number;
  #inflight = 0;
  #timer: Timer | undefined;

  constructor(limits: RequestLimits, clock: Clock) {
    this.#clock = clock;
    this.#qps = limits.qps || DEFAULT_QPS;
    this.#burst = limits.burst || DEFAULT_BURST;
    this.#maxInflight = limits.maxInflight || Number.POSITIVE_INFINITY;
    this.#tokens = this.#burst;
    this.#refilledAt = clock.now();
  }

  /**
   * Waits for its turn; {@link release} is to be called when the response headers are there. What goes on with something that was
   * admitted, such as the next page of a list, is not held up again: each waits for the one before, and a list of 10,000 slices
   * would take 20 s at 5 pages a second.
   * @returns milliseconds waited
   * @throws the reason of the signal, when it is given up meanwhile
   */
  async acquire(signal: AbortSignal, goesOn = false): Promise<number> {
    signal.throwIfAborted();
    const start = this.#clock.now();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { resolve, reject, tokens: goesOn ? 0 : 1 };
    const giveUp = () => {
      const at = this.#waiting.indexOf(waiter);
      if (at < 0) return;
      this.#waiting.splice(at, 1);
      reject(signal.reason instanceof Error ? signal.reason : new Error("given up"));
    };
    signal.addEventListener("abort", giveUp, { once: true });
    if (goesOn) this.#waiting.unshift(waiter);
    else this.#waiting.push(waiter);
    this.#admit();
    try {
      await promise;
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
    return this.#clock.now() - start;
  }

  release(): void {
    this.#inflight--;
    this.#admit();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #admit(): void {
    const now = this.#clock.now();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#refilledAt) / 1000) * this.#qps);
    this.#refilledAt = now;
    for (
      let next = this.#waiting[0];
      next !== undefined && this.#inflight < this.#maxInflight && this.#tokens >= next.tokens;
      next = this.#waiting[0]
    ) {
      this.#tokens -= next.tokens;
      this.#inflight++;
      this.#waiting.shift();
      next.resolve();
    }
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#waiting.length > 0 && this.#tokens < 1) {
      const delay = Math.ceil(((1 - this.#tokens) / this.#qps) * 1000);
      this.#timer = this.#clock.after(delay, () => this.#admit());
    }
  }
}

interface Waiter {
  /** 0 or 1. */
  readonly tokens: number;
  resolve(): void;
  reject(error: Error): void;
}
