/** Memory of one process from /proc (proc(5)), in megabytes of 10^6 octets. */
import { readFileSync, writeFileSync } from "node:fs";

export interface ProcessMemory {
  readonly resident: number;
  /** Without pages of files, which the system can take away at any time: the program's own code and constants. */
  readonly own: number;
  /** The most that was resident since the start or {@link forgetPeak}. */
  readonly peak: number;
}

export function processMemory(pid: number): ProcessMemory {
  return parseMemory(readFileSync(`/proc/${pid}/status`, "latin1"));
}

/** From now on the peak is that of what comes. */
export function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}

/** @param status the text of /proc/PID/status @throws RangeError for a process that has ended */
export function parseMemory(status: string): ProcessMemory {
  return {
    resident: megabytes(status, "VmRSS"),
    own: megabytes(status, "RssAnon"),
    peak: megabytes(status, "VmHWM"),
  };
}

/** Milliseconds between two looks. */
const LOOKS = 5;

/** Looks for the most that a process has of its own: the system keeps the peak of all its memory alone. */
export class OwnPeak implements Disposable {
  megabytes = 0;
  readonly #timer: NodeJS.Timeout;

  constructor(pid: number) {
    this.#timer = setInterval(() => {
      this.megabytes = Math.max(this.megabytes, processMemory(pid).own);
    }, LOOKS);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

function megabytes(status: string, field: string): number {
  const kibibytes = new RegExp(`^${field}:\\s*(\\d+) kB$`, "m").exec(status)?.[1];
  if (kibibytes === undefined) throw new RangeError(`no ${field}: the process has ended`);
  return (Number(kibibytes) * 1024) / 1e6;
}
