/** Detects reasons to doubt measured times. */
import { cpuSeconds, machineCpuSeconds } from "../run/process-usage.ts";

/** More of a core than this, and times tell of the others. */
const OTHERS_LIMIT = 0.05;

/** How busy the machine is with what is no part of the benchmark, from one look to the next. */
export class OtherProcesses {
  readonly doubts: string[] = [];
  readonly #ticksPerSecond: number;
  #last: { readonly at: number; readonly seconds: number };

  constructor(ticksPerSecond: number) {
    this.#ticksPerSecond = ticksPerSecond;
    this.#last = this.#now();
  }

  /** Notes a doubt where others have used much since the last look. */
  look(about: string): void {
    const before = this.#last;
    this.#last = this.#now();
    const share = (this.#last.seconds - before.seconds) / ((this.#last.at - before.at) / 1000);
    if (share > OTHERS_LIMIT)
      this.doubts.push(`${about}: other processes used ${Math.round(share * 100)} % of a core`);
  }

  #now() {
    // All that is measured, and what measures it, descends from this process.
    const own = cpuSeconds(process.pid, this.#ticksPerSecond);
    return { at: performance.now(), seconds: machineCpuSeconds(this.#ticksPerSecond) - own };
  }
}
