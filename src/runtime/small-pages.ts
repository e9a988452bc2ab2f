/**
 * Uses pages of 4 KiB, even if the system assigns pages of 2 MiB by default (`transparent_hugepage` is `always`, as
 * in several server distributions). There a process gets 2 MiB for each 4 KiB that it touches, and the kernel's
 * daemon soon refills memory that it releases.
 */

import { loadKoffi } from "./plain.ts";

/** PR_SET_THP_DISABLE of prctl(2): for all memory of the process, and for the programs that it starts. */
const SET_LARGE_PAGES_OFF = 41;

/** Call it in a process that is about to start. @returns whether the system complies */
export async function takeSmallPages(): Promise<boolean> {
  if (process.platform !== "linux") return false;
  try {
    const koffi = await loadKoffi();
    const prctl = koffi.load(null).func("int prctl(int, size_t, size_t, size_t, size_t)");
    return prctl(SET_LARGE_PAGES_OFF, 1, 0, 0, 0) === 0;
  } catch {
    // koffi is an optional dependency.
    return false;
  }
}
