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
  /** Tasks, and those whose work is behind a promise. */
  #waiting: ({ readonly task: () => void } | { readonly resume: () => void })[] = [];
  /** Whether the share of this turn is counted already. */
  #isCounting = false;
  #since = 0;
  /** Between {@link begin} and {@link pause}. */
  #hasBegun = false;
  #pausedAt = Number.NEGATIVE_INFINITY;

  /** @param share milliseconds of a turn */
  constructor(clock: Pick<Clock, "now">, share: number) {
    this.#clock = clock;
    this.#share = share;
  }

  /** Whether the share of this turn is used up: to be asked between parts of the work. */
  get isOver(): boolean {
    const now = this.#clock.now();
    if (!this.#isCounting) this.#count(this.#hasBegun ? this.#since : now);
    return now - this.#since >= this.#share;
  }

  /** Whether others wait for their part of a later turn. */
  get isWaitedFor(): boolean {
    return this.#waiting.length > 0;
  }

  /**
   * The same for who begins something that mostly comes alone, and calls {@link pause} when it is done. The end of a turn is noticed by an immediate, for
   * which the event loop looks for events once more: nothing alone needs one. What begins right behind something else goes on with its share.
   */
  begin(): boolean {
    const now = this.#clock.now();
    if (!this.#isCounting) {
      if (now - this.#pausedAt < RIGHT_BEHIND) this.#count(this.#since);
      else this.#since = now;
      this.#hasBegun = true;
    }
    return now - this.#since >= this.#share;
  }

  /** There is nothing more to do for now. */
  pause(): void {
    this.#hasBegun = false;
    if (!this.#isCounting) this.#pausedAt = this.#clock.now();
  }

  /** Resolves in a later turn, when all who have waited for longer have had theirs. */
  rest(): Promise<void> {
    return new Promise((resume) => this.#wait({ resume }));
  }

  /** Calls back in a later turn, behind all who have waited for longer, and before the share of that turn is used up. */
  later(task: () => void): void {
    this.#wait({ task });
  }

  #wait(waiter: { readonly task: () => void } | { readonly resume: () => void }): void {
    this.#waiting.push(waiter);
    if (!this.#isCounting) this.#count(this.#clock.now());
  }

  #count(since: number): void {
    this.#isCounting = true;
    this.#since = since;
    setImmediate(this.#endTurn);
  }

  readonly #endTurn = (): void => {
    this.#isCounting = false;
    this.#hasBegun = false;
    this.#pausedAt = Number.NEGATIVE_INFINITY;
    if (this.#waiting.length === 0) return;
    this.#count(this.#clock.now());
    const waiting = this.#waiting;
    let called = 0;
    this.#waiting = [];
    for (const waiter of waiting) {
      if (called > 0 && this.isOver) break;
      called++;
      if ("task" in waiter) {
        waiter.task();
        continue;
      }
      // What it does comes behind this: the rest of the turn is its own.
      waiter.resume();
      break;
    }
    this.#waiting = [...waiting.slice(called), ...this.#waiting];
  };
}

/** Milliseconds. Two parts of one turn that are further apart have somebody else's work between them, and he has a share of his own. */
const RIGHT_BEHIND = 0.1;

/** For work that nobody has to wait for: it goes on without a pause. */
export const withoutRest = async (): Promise<void> => undefined;
