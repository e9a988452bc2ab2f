/** How often and how many at once: `apiserver_qps`, `apiserver_burst`, `apiserver_max_inflight` (CoreDNS facts 2.47). */
import type { Clock, Timer } from "../../lib/clock.ts";

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
   * Waits for its turn; {@link release} is to be called when the response headers are there.
   * @returns milliseconds waited
   * @throws the reason of the signal, when it is given up meanwhile
   */
  async acquire(signal: AbortSignal): Promise<number> {
    signal.throwIfAborted();
    const start = this.#clock.now();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { resolve, reject };
    const giveUp = () => {
      const at = this.#waiting.indexOf(waiter);
      if (at < 0) return;
      this.#waiting.splice(at, 1);
      reject(signal.reason instanceof Error ? signal.reason : new Error("given up"));
    };
    signal.addEventListener("abort", giveUp, { once: true });
    this.#waiting.push(waiter);
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
    while (this.#waiting.length > 0 && this.#inflight < this.#maxInflight && this.#tokens >= 1) {
      this.#tokens--;
      this.#inflight++;
      this.#waiting.shift()?.resolve();
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
  resolve(): void;
  reject(error: Error): void;
}
