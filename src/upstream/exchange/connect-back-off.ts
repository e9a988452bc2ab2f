import type { Random } from "../../plugin/contract/site.ts";

/**
 * Pauses between attempts to connect that fail: a handshake costs both sides a thousand times what a query does. Each failure doubles
 * the pause, up to two seconds; what is asked meanwhile fails at once with the reason known.
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
    // From half of it to the whole, so that servers with the same upstream do not come at the same time.
    this.#until = now + pause * (0.5 + (this.#random.unpredictable() & 0xff) / 512);
    this.#reason = reason;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#until = Number.NEGATIVE_INFINITY;
  }

  /** Why no connection is to be opened now; `undefined` when one may be. */
  refusal(now: number): string | undefined {
    return now < this.#until ? this.#reason : undefined;
  }
}

const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 2_000;
