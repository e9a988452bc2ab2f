/** The freshness of a zone: the time of the last contact with its source, and the fault since then. */
import type { Clock } from "../../lib/time/clock.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";

export class Freshness {
  /** Source of the records, for people: `the file db.example.org`. */
  readonly source: string;
  readonly #clock: Clock;
  /** On {@link Clock.now}, which is monotonic; `undefined` before the first contact. */
  #confirmedAt: number | undefined;
  #fault = "";

  constructor(source: string, clock: Clock) {
    this.source = source;
    this.#clock = clock;
  }

  /** The current fault, empty if all is well. */
  get fault(): string {
    return this.#fault;
  }

  /** Milliseconds of {@link Clock.now}. */
  get confirmedAt(): number | undefined {
    return this.#confirmedAt;
  }

  /** Milliseconds since the last contact with the source. */
  get age(): number | undefined {
    if (this.#confirmedAt === undefined) return undefined;
    return Math.max(0, this.#clock.now() - this.#confirmedAt);
  }

  /**
   * The zone matches its source.
   * @param at milliseconds of {@link Clock.now}; default: now
   * @returns the previous fault
   */
  confirm(at: number = this.#clock.now()): string {
    const fault = this.#fault;
    this.#confirmedAt = at;
    this.#fault = "";
    return fault;
  }

  /** @returns whether the fault is new: a reason is logged once, until it changes */
  fail(fault: string): boolean {
    if (fault === this.#fault) return false;
    this.#fault = fault;
    return true;
  }

  /** In words: `12s ago`, and the fault. */
  describe(): string {
    const { age } = this;
    const since = age === undefined ? "never" : `${formatGoDuration(Math.floor(age / 1_000) * 1_000)} ago`;
    return `read ${since}${this.#fault === "" ? "" : `, cannot be read now: ${this.#fault}`}`;
  }
}
