/** Time stamps of files, and when they distinguish two states of a file. */
import type { Clock } from "./clock.ts";

/** A text that distinguishes one state of a file from another. */
export function stampOf(
  status: {
    readonly [K in "dev" | "ino" | "size" | "mtimeNs" | "ctimeNs"]: bigint;
  },
): string {
  return [status.dev, status.ino, status.size, status.mtimeNs, status.ctimeNs].join(":");
}

/** FAT stores even seconds; all other file systems are finer. Milliseconds. */
const COARSEST = 2_000;

/**
 * Whether a later write gets another time stamp; a write in the same tick of the file system's clock would not. A
 * stamp in the future dates from before the clock was set back, and does not recur soon.
 * @param modifiedAt milliseconds since the epoch
 */
export function isStampSettled(modifiedAt: number, clock: Pick<Clock, "wallTime">): boolean {
  return Math.abs(clock.wallTime() - modifiedAt) > COARSEST;
}
