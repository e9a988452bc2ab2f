import type { Random } from "../../plugin/contract/site.ts";

/**
 * Pauses between failing attempts to connect, because a handshake is far more expensive than a query for both sides. Each failure
 * doubles the pause, up to two seconds. Queries during the pause fail at once with the last reason.
 */
export class ConnectBackOff {
  readonly #random: Pick<Random, "unpredictable">;
  #failures = 0;
  #until = Number.NEGATIVE_INFINITY;
  #reason = "";

  constructor(random: Pick<Random, "unpredictable">) {
    this.#random = random;
  }

  failed(now: number, reason: string): void {
    const pause = Math.min(FIRST_PAUSE * 2 ** this.#failures++, LONGEST_PAUSE);
    // From half of it to the whole, so that servers with the same upstream do not connect at the same time.
    this.#until = now + pause * (0.5 + (this.#random.unpredictable() & 0xff) / 512);
    this.#reason = reason;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#until = Number.NEGATIVE_INFINITY;
  }

  /** Why no connection may be opened now; `undefined` if one may. */
  refusal(now: number): string | undefined {
    return now < this.#until ? this.#reason : undefined;
  }
}

const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 2_000;
