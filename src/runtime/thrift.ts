/**
 * Keeps V8 from using memory for short-lived work, while large data are read once, such as the lists of a large
 * cluster.
 *
 * - TurboFan, the optimizing compiler, starts no jobs. The code that reads the lists would be optimized when it is
 * hardly needed any more, and the compiler itself needs much memory. Optimized functions stay, and Maglev goes on.
 * - The young generation keeps its size. In an idle server it would grow at once.
 *
 * V8 reads both flags whenever a function has run often, and at each collection.
 */
import type { Clock, Timer } from "../lib/time/clock.ts";
import { YoungGrowth } from "./heap-bounds.ts";
import { setRunningFlag } from "./plain.ts";

/** Milliseconds. Queries need optimized code, however long a list takes. */
const LONGEST = 10_000;

export interface ThriftOptions {
  readonly clock: Pick<Clock, "after">;
  readonly setFlag?: (flag: string) => void;
  readonly growth?: Pick<YoungGrowth, "begin" | "end">;
}

export class Thrift {
  readonly #clock: Pick<Clock, "after">;
  readonly #setFlag: (flag: string) => void;
  readonly #growth: Pick<YoungGrowth, "begin" | "end">;
  #wanted = 0;
  #timer: Timer | undefined;

  constructor({ clock, setFlag = setRunningFlag, growth = new YoungGrowth() }: ThriftOptions) {
    this.#clock = clock;
    this.#setFlag = setFlag;
    this.#growth = growth;
  }

  /** Begins to save, or joins the present users. @returns a function that ends it for this caller */
  begin(): () => void {
    if (this.#wanted++ === 0) {
      this.#setFlag("--no-turbofan");
      this.#growth.end();
      this.#setFlag("--semi-space-growth-factor=1");
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
    // V8 may have shrunk it. The watch of the process may not run for a second, in which it would grow without bound.
    this.#growth.begin();
  }
}
