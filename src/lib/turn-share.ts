/** Work that would halt the thread for too long, in portions of a few milliseconds: in between, all others have their turn of the event loop. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "./clock.ts";

export class TurnShare {
  readonly #clock: Pick<Clock, "now">;
  readonly #share: number;
  #since: number;

  /** @param share milliseconds of a turn */
  constructor(clock: Pick<Clock, "now">, share: number) {
    this.#clock = clock;
    this.#share = share;
    this.#since = clock.now();
  }

  /** To be awaited between parts of the work, the shorter the better. Resolves at once unless the share of this turn is used up. */
  readonly rest = async (): Promise<void> => {
    if (this.#clock.now() - this.#since < this.#share) return;
    await nextTurn();
    this.#since = this.#clock.now();
  };
}

/** For work that nobody has to wait for: it goes on without a pause. */
export const withoutRest = async (): Promise<void> => undefined;
