/** Time stamps of files, and how far they tell one state of a file from the next. */
import type { Clock } from "./clock.ts";

/** What tells one state of a file from another, as text. */
export function stampOf(
  status: {
    readonly [K in "dev" | "ino" | "size" | "mtimeNs" | "ctimeNs"]: bigint;
  },
): string {
  return [status.dev, status.ino, status.size, status.mtimeNs, status.ctimeNs].join(":");
}

/** FAT keeps even seconds; all other file systems are finer. Milliseconds. */
const COARSEST = 2_000;

/**
 * Whether a write after this one gets another time stamp. One in the same tick of the file system's clock would not. A stamp of the future is from before
 * somebody set the clock back, and does not come again soon.
 * @param modifiedAt milliseconds since the epoch
 */
export function isStampSettled(modifiedAt: number, clock: Pick<Clock, "wallTime">): boolean {
  return Math.abs(clock.wallTime() - modifiedAt) > COARSEST;
}
