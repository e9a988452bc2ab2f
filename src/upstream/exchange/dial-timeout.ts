/**
 * Timeout of a connection attempt: twice the recent average, from 1 s to 30 s
 * (docs/spec/coredns-behaviour.md#upstream-connections). The average starts at 15 s and moves by a quarter of the difference.
 */
export class DialTimeout {
  #average = 15_000;

  /** Milliseconds. */
  get current(): number {
    return Math.min(Math.max(2 * this.#average, SHORTEST), LONGEST);
  }

  /** @param duration of a connection attempt, successful or not, in milliseconds */
  record(duration: number): void {
    this.#average += (duration - this.#average) / 4;
  }
}

const SHORTEST = 1_000;
const LONGEST = 30_000;
