/** Answers out of a store that another thread is writing to just now. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { Rcode } from "../../dns/numbers.ts";
import type { Outcome } from "../../plugin/outcome.ts";
import type { Query } from "../../plugin/query.ts";
import { StoreBusyError } from "../store/state-reader.ts";

/** Turns of the event loop: some seconds, after which nobody waits for the answer any more. */
const MOST_TURNS = 50_000;

/**
 * What `answer` says, which reads the store before it does anything else. Where that is being changed all the while, a promise of what it says in a later
 * turn of the event loop.
 */
export function answerWhole(
  query: Query,
  answer: () => Outcome | Promise<Outcome>,
): Outcome | Promise<Outcome> {
  try {
    return answer();
  } catch (error) {
    if (error instanceof StoreBusyError) return answerLater(query, answer);
    throw error;
  }
}

async function answerLater(query: Query, answer: () => Outcome | Promise<Outcome>): Promise<Outcome> {
  for (let turn = 0; turn < MOST_TURNS; turn++) {
    await nextTurn();
    try {
      return await answer();
    } catch (error) {
      if (!(error instanceof StoreBusyError)) throw error;
    }
  }
  return query.fail(Rcode.SERVFAIL);
}
