/**
 * How much of something may be done in one turn of the event loop. libuv reads a UDP socket up to 32 times in a turn and tells of
 * each datagram, so that a bound on the work of one call would not be one on the work of a turn.
 */
export class TurnBudget {
  readonly #share: number;
  #left: number;
  #renewalScheduled = false;

  /** @param share what each turn gets */
  constructor(share: number) {
    this.#share = share;
    this.#left = share;
  }

  /** What this turn may still do. */
  get left(): number {
    return this.#left;
  }

  spend(amount: number): void {
    this.#left -= amount;
    if (this.#renewalScheduled || amount === 0) return;
    this.#renewalScheduled = true;
    setImmediate(this.#renew);
  }

  readonly #renew = (): void => {
    this.#renewalScheduled = false;
    this.#left = this.#share;
  };
}
