/**
 * Memory in pages of 4 KiB, also where the system hands out pages of 2 MiB unasked (`transparent_hugepage` is `always`, as in several distributions for
 * servers). There a process has 2 MiB for each 4 KiB that it touches, and what it gives back the kernel's daemon soon fills up again: a server that takes 35 MB takes 52 after
 * half a minute. Measured with 20,000 cached names, the daemon made to hurry.
 */

import { loadKoffi } from "./plain.ts";

/** PR_SET_THP_DISABLE of prctl(2): for all memory of the process, and for the programs that it starts. */
const SET_LARGE_PAGES_OFF = 41;

/** For a process that is about to start. @returns whether the system does so */
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
