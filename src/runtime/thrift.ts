/**
 * Keeps V8 from taking memory for what is soon over, while much is read that is read once, such as the lists of a large cluster.
 *
 * - TurboFan, the optimizing compiler, begins nothing. What reads the lists would be compiled when it is hardly needed any more, for 10 MB at the peak: 6 of
 *   them are pages of node's own file with the compiler in them, the rest are its notes. What has been compiled stays so, and Maglev goes on.
 * - The young generation stays as large as it is. In a server at rest it would grow by 2 MB in the first moment.
 *
 * V8 reads both flags whenever a function has run often, and at each collection.
 */
import type { Clock, Timer } from "../lib/time/clock.ts";
import { YoungGrowth } from "./heap-bounds.ts";
import { setRunningFlag } from "./plain.ts";

/** Milliseconds. Queries are to have their code optimized, however long a list takes. */
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

  /** Begins to save, or joins those for whom that was begun. @returns ends it for this caller, at the first call */
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
    // V8 may have made it smaller meanwhile. Who watches it in the process may not look for a second, in which it would grow without bound.
    this.#growth.begin();
  }
}
