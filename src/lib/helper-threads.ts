/**
 * V8's helper threads compile and collect garbage beside the thread that answers. Where they share a processor with it, the kernel gives each of
 * them as much as that one: queries then wait 5 to 30 ms while a function is compiled.
 */
import { readdirSync, readFileSync } from "node:fs";
import { setPriority } from "node:os";
import { loadForeignFunctions } from "./linux/libc.ts";

const THREADS = "/proc/self/task";
/** The name that V8 gives them. */
const HELPER = "V8Worker";
/**
 * A helper then has a third of what the answering thread has. With a niceness of 10, a tenth, what is to be freed is freed so much later that
 * the process grows by 15 MB.
 */
export const HELPER_NICENESS = 5;

/** SCHED_BATCH of sched(7). */
const BATCH_POLICY = 3;

/**
 * Has the kernel prefer all other threads of this process to V8's helpers. Changes nothing where it cannot, or where this is not Linux.
 *
 * A helper that is woken would also take the processor at once from the thread that wakes it, in the middle of a collection: half of its pause by the clock. One of
 * the policy for batches waits until the kernel looks around by itself.
 *
 * On a single processor, collecting the young generation without them (`--no-parallel-scavenge`) makes for shorter collections, but a forwarded query
 * then takes 12 % more CPU.
 */
export async function holdBackHelpers(): Promise<void> {
  try {
    const helpers = helperThreads();
    for (const thread of helpers) setPriority(thread, HELPER_NICENESS);
    const { library } = await loadForeignFunctions();
    const setPolicy = library.func("int sched_setscheduler(int, int, const void *)");
    // No priority: that policy has none.
    for (const thread of helpers) setPolicy(thread, BATCH_POLICY, new Uint8Array(4));
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
