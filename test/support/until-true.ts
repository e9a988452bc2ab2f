/** Waiting for a state that nothing tells of, never for ever. */
import { setTimeout as pause } from "node:timers/promises";

export interface Waiting {
  /** For the error. Default: the source text of the question. */
  readonly what?: string;
  /** For the error, which shows the last lines. */
  readonly log?: () => string;
  /** Real time. Default half a minute, which is long enough for a busy machine. */
  readonly milliseconds?: number;
  /** What happens between two questions. By default 20 ms pass. */
  readonly between?: () => Promise<unknown>;
}

const LOG_LINES = 30;

/**
 * Asks again and again; a question that fails is a no.
 * @throws where it has been no until the deadline
 */
export async function untilTrue(
  isSo: () => boolean | Promise<boolean>,
  { what = String(isSo), log = () => "", milliseconds = 30_000, between = () => pause(20) }: Waiting = {},
): Promise<void> {
  const deadline = performance.now() + milliseconds;
  let cause: unknown;
  for (;;) {
    try {
      if (await isSo()) return;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    if (performance.now() > deadline) break;
    await between();
  }
  const lines = log().trimEnd().split("\n").slice(-LOG_LINES).join("\n");
  const shown = lines === "" ? "" : `\nThe log ends with:\n${lines}`;
  throw new Error(`waited ${milliseconds} ms in vain for: ${what}${shown}`, { cause });
}

/** What {@link untilTime} needs of a plugin under test. */
interface TimedTest {
  readonly clock: { settle(milliseconds: number): Promise<unknown> };
  readonly log: { readonly lines: readonly string[] };
}

/** Moves the clock of a plugin under test on, `step` milliseconds at a time, until something is so. */
export function untilTime(
  test: TimedTest,
  step: number,
  isSo: () => boolean | Promise<boolean>,
): Promise<void> {
  return untilTrue(isSo, {
    log: () => test.log.lines.join("\n"),
    async between() {
      await test.clock.settle(step);
      await pause(1);
    },
  });
}
