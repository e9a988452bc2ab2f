/** Divides long work into portions of a few milliseconds, so that everything else gets its turn of the event loop. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "./clock.ts";

export class TurnShare {
  readonly #clock: Pick<Clock, "now">;
  readonly #share: number;
  #since: number;

  /** @param share milliseconds of each turn */
  constructor(clock: Pick<Clock, "now">, share: number) {
    this.#clock = clock;
    this.#share = share;
    this.#since = clock.now();
  }

  /** Await it between short parts of the work. Resolves at once unless the share of this turn is used up. */
  readonly rest = async (): Promise<void> => {
    if (this.#clock.now() - this.#since < this.#share) return;
    await nextTurn();
    this.#since = this.#clock.now();
  };
}

/** The same for several users: their work in one turn does not exceed the share of one, and they take turns. */
export class SharedTurns {
  readonly #clock: Pick<Clock, "now">;
  readonly #share: number;
  /** Tasks, and users that wait on a promise. */
  #waiting: ({ readonly task: () => void } | { readonly resume: () => void })[] = [];
  /** Whether the share of this turn is being counted. */
  #isCounting = false;
  #since = 0;
  /** Between {@link begin} and {@link pause}. */
  #hasBegun = false;
  #pausedAt = Number.NEGATIVE_INFINITY;

  /** @param share milliseconds of each turn */
  constructor(clock: Pick<Clock, "now">, share: number) {
    this.#clock = clock;
    this.#share = share;
  }

  /** Whether the share of this turn is used up: check it between parts of the work. */
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
   * The same for work that mostly comes alone, and calls {@link pause} when it is done. The end of a turn is detected
   * by an immediate, which costs another poll of the event loop; work that is alone needs none. Work that begins
   * right after other work continues with its share.
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

  /** There is no more work for now. */
  pause(): void {
    this.#hasBegun = false;
    if (!this.#isCounting) this.#pausedAt = this.#clock.now();
  }

  /** Resolves in a later turn, after all users that have waited for longer. */
  rest(): Promise<void> {
    return new Promise((resume) => this.#wait({ resume }));
  }

  /**
   * Calls back in a later turn, after all users that have waited for longer, and before the share of that turn is
   * used up.
   */
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
      // Its work comes after this: the rest of the turn is its own.
      waiter.resume();
      break;
    }
    this.#waiting = [...waiting.slice(called), ...this.#waiting];
  };
}

/**
 * Milliseconds. Two parts that are further apart have other work between them, so the later one starts with a share
 * of its own.
 */
const RIGHT_BEHIND = 0.1;

/** For work that blocks nothing: it continues without a pause. */
export const withoutRest = async (): Promise<void> => undefined;
