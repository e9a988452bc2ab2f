/** Reading a store that another thread is writing to just now. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { Rcode } from "../../dns/numbers.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";
import { StoreBusyError } from "../store/tables/state-reader.ts";

/** Turns of the event loop: some seconds, after which no client waits for the answer. */
const MOST_TURNS = 50_000;

/**
 * What `answer` says, which reads the store before it does anything else. Where that is being changed all the while, a promise of what it says in a later
 * turn of the event loop.
 */
export function answerWhole(
  query: Query,
  answer: () => Outcome | Promise<Outcome>,
): Outcome | Promise<Outcome> {
  return whenWhole(answer, () => query.fail(Rcode.SERVFAIL));
}

/**
 * The same for anything that is found in a store.
 * @param givenUp what there is instead if the store is never readable
 */
export function whenWhole<T>(find: () => T | Promise<T>, givenUp: () => T): T | Promise<T> {
  try {
    return find();
  } catch (error) {
    if (error instanceof StoreBusyError) return findLater(find, givenUp);
    throw error;
  }
}

async function findLater<T>(find: () => T | Promise<T>, givenUp: () => T): Promise<T> {
  for (let turn = 0; turn < MOST_TURNS; turn++) {
    await nextTurn();
    try {
      return await find();
    } catch (error) {
      if (!(error instanceof StoreBusyError)) throw error;
    }
  }
  return givenUp();
}
