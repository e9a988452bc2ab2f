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

/**
 * The same for several whose work comes at the same time: what they do in one turn together is no more than the share of one, and they take turns.
 */
export class SharedTurns {
  readonly #clock: Pick<Clock, "now">;
  readonly #share: number;
  readonly #waiting: (() => void)[] = [];
  /** Whether the share of this turn is counted already. */
  #isCounting = false;
  #since = 0;

  /** @param share milliseconds of a turn */
  constructor(clock: Pick<Clock, "now">, share: number) {
    this.#clock = clock;
    this.#share = share;
  }

  /** Whether {@link rest} has to be awaited before anything else is done: to be asked between parts of the work. */
  get isOver(): boolean {
    const now = this.#clock.now();
    if (!this.#isCounting) this.#count(now);
    return this.#waiting.length > 0 || now - this.#since >= this.#share;
  }

  /** Resolves in a later turn, which is this one's alone: others who wait as well come before it, or after it. */
  rest(): Promise<void> {
    if (!this.#isCounting) this.#count(this.#clock.now());
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  #count(now: number): void {
    this.#isCounting = true;
    this.#since = now;
    setImmediate(this.#end);
  }

  readonly #end = (): void => {
    this.#isCounting = false;
    const next = this.#waiting.shift();
    if (next === undefined) return;
    this.#count(this.#clock.now());
    next();
  };
}

/** For work that nobody has to wait for: it goes on without a pause. */
export const withoutRest = async (): Promise<void> => undefined;
