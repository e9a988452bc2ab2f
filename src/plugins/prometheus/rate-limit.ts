/** The rate limit of a web configuration file: a token bucket that gains a token per interval. */
import type { Clock } from "../../plugin/index.ts";

export interface RateLimitSettings {
  /** Milliseconds. */
  readonly interval: number;
  /** Requests at once. */
  readonly burst: number;
}

export class RateLimit {
  readonly settings: RateLimitSettings;
  readonly #clock: Clock;
  #tokens: number;
  #since: number;

  constructor(settings: RateLimitSettings, clock: Clock) {
    this.settings = settings;
    this.#clock = clock;
    this.#tokens = settings.burst;
    this.#since = clock.now();
  }

  /** @returns whether another request is allowed */
  take(): boolean {
    const { interval, burst } = this.settings;
    const now = this.#clock.now();
    this.#tokens = Math.min(burst, this.#tokens + (now - this.#since) / interval);
    this.#since = now;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}
