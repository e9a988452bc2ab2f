/**
 * V8's helper threads compile and collect garbage beside the thread that answers. If they share a processor with it,
 * the kernel gives each of them the same time slice: queries then wait while a function is compiled.
 */
import { readdirSync, readFileSync } from "node:fs";
import { setPriority } from "node:os";
import { isPlain } from "./plain.ts";

const THREADS = "/proc/self/task";
/** The thread name that V8 sets. */
const HELPER = "V8Worker";
/**
 * Gives a helper a third of the answering thread's CPU share. With a niceness of 10, a tenth, garbage is freed so
 * late that the process grows.
 */
export const HELPER_NICENESS = 5;

/**
 * Lowers the priority of V8's helpers below all other threads of this process. Does nothing if the system forbids it,
 * or is not Linux.
 *
 * On a single processor, collecting the young generation without helpers (`--no-parallel-scavenge`) makes for shorter
 * collections, but forwarded queries then take more CPU.
 */
export function holdBackHelpers(): void {
  if (isPlain()) return;
  try {
    for (const thread of helperThreads()) setPriority(thread, HELPER_NICENESS);
  } catch {
    // Another system, or one that forbids it: the helpers keep their priority.
    return;
  }
}

/** The ids of V8's own threads. */
export function helperThreads(): number[] {
  return readdirSync(THREADS)
    .filter((thread) => readFileSync(`${THREADS}/${thread}/comm`, "latin1").trim() === HELPER)
    .map(Number);
}
