/**
 * V8's helper threads compile and collect garbage beside the thread that answers. Where they share a processor with it, the kernel gives each of
 * them as much as that one: queries then wait 5 to 30 ms while a function is compiled.
 */
import { readdirSync, readFileSync } from "node:fs";
import { setPriority } from "node:os";
import { isPlain } from "./plain.ts";

const THREADS = "/proc/self/task";
/** The name that V8 gives them. */
const HELPER = "V8Worker";
/**
 * A helper then has a third of what the answering thread has. With a niceness of 10, a tenth, what is to be freed is freed so much later that
 * the process grows by 15 MB.
 */
export const HELPER_NICENESS = 5;

/**
 * Has the kernel prefer all other threads of this process to V8's helpers. Changes nothing where it cannot, or where this is not Linux.
 *
 * On a single processor, collecting the young generation without them (`--no-parallel-scavenge`) makes for shorter collections, but a forwarded query
 * then takes 12 % more CPU.
 */
export function holdBackHelpers(): void {
  if (isPlain()) return;
  try {
    for (const thread of helperThreads()) setPriority(thread, HELPER_NICENESS);
  } catch {
    // Another system, or one that forbids it. Nothing is lost but time.
    return;
  }
}

/** Numbers of the threads that V8 has made for itself. */
export function helperThreads(): number[] {
  return readdirSync(THREADS)
    .filter((thread) => readFileSync(`${THREADS}/${thread}/comm`, "latin1").trim() === HELPER)
    .map(Number);
}
