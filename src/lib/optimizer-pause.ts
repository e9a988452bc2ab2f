/**
 * Keeps V8's optimizing compiler, TurboFan, from beginning anything while much is read that is read once. To compile what reads the lists of a large cluster
 * took 10 MB at their peak: 6 of them are pages of node's own file with the compiler in them, the rest are its notes. It would be done when the
 * lists are. What runs often then is compiled afterwards; what has been compiled stays so, and Maglev goes on.
 */
import { setFlagsFromString } from "node:v8";
import type { Clock, Timer } from "./clock.ts";

/** Milliseconds. Queries are to have their code optimized, however long a list takes. */
const LONGEST = 10_000;

export class OptimizerPause {
  readonly #clock: Pick<Clock, "after">;
  readonly #setFlag: (flag: string) => void;
  #wanted = 0;
  #timer: Timer | undefined;

  /** @param setFlag V8's, which reads this one whenever a function has run often */
  constructor(clock: Pick<Clock, "after">, setFlag: (flag: string) => void = setFlagsFromString) {
    this.#clock = clock;
    this.#setFlag = setFlag;
  }

  /** Begins a pause, or joins the one that goes on. @returns ends it for this caller, at the first call */
  begin(): () => void {
    if (this.#wanted++ === 0) {
      this.#setFlag("--no-turbofan");
      this.#timer = this.#clock.after(LONGEST, () => this.#end());
    }
    let isWanted = true;
    return () => {
      if (!isWanted) return;
      isWanted = false;
      if (--this.#wanted === 0) this.#end();
    };
  }

  #end(): void {
    if (this.#timer === undefined) return;
    this.#timer.cancel();
    this.#timer = undefined;
    this.#setFlag("--turbofan");
  }
}
