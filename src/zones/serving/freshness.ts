/** How fresh a zone is: when its source was heard of last, and what is wrong with it since. */
import type { Clock } from "../../lib/time/clock.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";

export class Freshness {
  /** Where the records are from, for people: `the file db.example.org`. */
  readonly source: string;
  readonly #clock: Clock;
  /** By {@link Clock.now}, which nobody sets; `undefined` before the first time. */
  #confirmedAt: number | undefined;
  #fault = "";

  constructor(source: string, clock: Clock) {
    this.source = source;
    this.#clock = clock;
  }

  /** What is wrong, empty while all is well. */
  get fault(): string {
    return this.#fault;
  }

  /** Milliseconds of {@link Clock.now}. */
  get confirmedAt(): number | undefined {
    return this.#confirmedAt;
  }

  /** Milliseconds since the source was heard of. */
  get age(): number | undefined {
    if (this.#confirmedAt === undefined) return undefined;
    return Math.max(0, this.#clock.now() - this.#confirmedAt);
  }

  /**
   * The zone is as the source has it.
   * @param at milliseconds of {@link Clock.now}, which it is unless given
   * @returns what was wrong before
   */
  confirm(at: number = this.#clock.now()): string {
    const fault = this.#fault;
    this.#confirmedAt = at;
    this.#fault = "";
    return fault;
  }

  /** @returns whether this is news: a reason is logged once, until it changes */
  fail(fault: string): boolean {
    if (fault === this.#fault) return false;
    this.#fault = fault;
    return true;
  }

  /** In words: `12s ago`, and what is wrong. */
  describe(): string {
    const { age } = this;
    const since = age === undefined ? "never" : `${formatGoDuration(Math.floor(age / 1_000) * 1_000)} ago`;
    return `read ${since}${this.#fault === "" ? "" : `, cannot be read now: ${this.#fault}`}`;
  }
}
