/**
 * When queries of many independent clients are due: a Poisson process. An open-loop generator sends at these times whatever
 * the server does, so a server that stops for a moment pays for every query that would have come meanwhile.
 */
export class Arrivals {
  readonly #random: () => number;
  readonly #meanGap: number;
  #due: number;

  /**
   * @param start when the first gap begins, milliseconds
   * @param rate queries a second
   */
  constructor(start: number, rate: number, random: () => number) {
    if (!(rate > 0)) throw new RangeError(`not a rate: ${rate}`);
    this.#random = random;
    this.#meanGap = 1000 / rate;
    this.#due = start;
    this.advance();
  }

  /** When the next query is due, milliseconds. */
  get due(): number {
    return this.#due;
  }

  /** Goes on to the query after it. */
  advance(): void {
    this.#due -= Math.log(1 - this.#random()) * this.#meanGap;
  }
}
