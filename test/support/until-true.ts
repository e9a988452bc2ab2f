/** Waiting for a state of another process that it does not tell of. */
import { setTimeout as pause } from "node:timers/promises";

/**
 * Asks again and again; a question that fails is a no.
 * @throws where it has been no for `milliseconds`
 */
export async function untilTrue(what: () => Promise<boolean>, milliseconds = 30_000): Promise<void> {
  const deadline = performance.now() + milliseconds;
  while (!(await what().catch(() => false))) {
    if (performance.now() > deadline) throw new Error(`in vain: ${what}`);
    await pause(20);
  }
}
