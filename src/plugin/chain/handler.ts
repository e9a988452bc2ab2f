/** What a plugin does with queries. */
import { Rcode } from "../../dns/numbers.ts";
import { Failure, type Outcome } from "../query/outcome.ts";
import type { Query } from "../query/query.ts";
import { type LateFaults, LateOutcome } from "./late-outcome.ts";

/**
 * Calls the rest of the chain. Behind the last plugin it fails with SERVFAIL and "no next plugin found".
 * Never throws and never rejects: what goes wrong behind it comes back as a `Failure`.
 */
export type Next = (query: Query) => Outcome | Promise<Outcome>;

/**
 * Answers, returns `next(query)`, or looks at what comes back and changes it. Return a promise only when something has to
 * wait: answers at hand must stay synchronous.
 */
export type Handler = (query: Query, next: Next) => Outcome | Promise<Outcome>;

/** What a plugin makes of what the rest of the chain said. */
export type Review = (outcome: Outcome, query: Query) => Outcome;

/** A handler that hands every query on, and looks at what comes back: see {@link afterwards}. */
export interface Reviewer extends Handler {
  readonly review: Review;
  readonly reviewLate: Review;
  readonly isRepeatable: boolean;
}

export interface ReviewOptions {
  /**
   * Whether an answer may be given again without the plugin: it only looks at failures, say. A plugin that wants to know how often it was
   * given has a `witness` instead.
   */
  readonly repeatable?: boolean;
}

/**
 * The handler of a plugin that does no more than look at what the rest of the chain says, and may change it. The chain knows such handlers,
 * and calls those that follow each other in a loop.
 * @param reviewLate for what comes in a later turn of the event loop than the query
 */
export function afterwards(
  review: Review,
  reviewLate: Review = review,
  { repeatable = false }: ReviewOptions = {},
): Reviewer {
  const handle: Handler = (query, next) => {
    const outcome = next(query);
    return afterNext(outcome, query, outcome instanceof Promise ? reviewLate : review);
  };
  return Object.assign(handle, { review, reviewLate, isRepeatable: repeatable });
}

export function isReviewer(handle: Handler): handle is Reviewer {
  return "review" in handle;
}

/**
 * Applies `after` to what the rest of the chain said, now or when it is known. `after` should be one function made at
 * set-up, not a closure a query.
 */
export function afterNext(
  outcome: Outcome | Promise<Outcome>,
  query: Query,
  after: (outcome: Outcome, query: Query) => Outcome,
): Outcome | Promise<Outcome> {
  if (!(outcome instanceof Promise)) return after(outcome, query);
  const { link } = query;
  // What came from elsewhere than the rest of the chain may still reject: the chain watches over it.
  if (link === undefined || outcome !== query.pending)
    return outcome.then((settled) => after(settled, query));
  // One for neighbouring plugins. So who calls `afterNext` for what the rest of the chain promised, and hands on what it gives, cannot tell
  // it from what the plugins in front make of it.
  const late = LateOutcome.of(query, outcome, NEVER_REJECTED);
  late.add(link, after);
  query.pending = late;
  return late;
}

const NEVER_REJECTED: LateFaults = Object.freeze({
  panicked: (error: unknown) =>
    new Failure(Rcode.SERVFAIL, error instanceof Error ? error : new Error(String(error))),
});
