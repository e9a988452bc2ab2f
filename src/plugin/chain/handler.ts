/** The handler of a plugin, and helpers for handlers that review outcomes. */
import { Rcode } from "../../dns/numbers.ts";
import { Failure, type Outcome } from "../query/outcome.ts";
import type { Query } from "../query/query.ts";
import { type LateFaults, LateOutcome } from "./late-outcome.ts";

/**
 * Calls the rest of the chain. Behind the last plugin it fails with SERVFAIL and "no next plugin found". Never throws
 * and never rejects: errors of the rest of the chain come back as a `Failure`.
 */
export type Next = (query: Query) => Outcome | Promise<Outcome>;

/**
 * Answers, returns `next(query)`, or reviews and changes its outcome. Return a promise only if the work is
 * asynchronous: available answers must be returned synchronously.
 */
export type Handler = (query: Query, next: Next) => Outcome | Promise<Outcome>;

/** Returns the plugin's outcome, given that of the rest of the chain. */
export type Review = (outcome: Outcome, query: Query) => Outcome;

/** A handler that passes every query on, and reviews the outcome: see {@link afterwards}. */
export interface Reviewer extends Handler {
  readonly review: Review;
  readonly reviewLate: Review;
  readonly isRepeatable: boolean;
}

/** How `afterwards` treats repeated answers. */
export interface ReviewOptions {
  /**
   * Whether an answer may be repeated without the plugin, for example because it only reviews failures. A plugin that
   * counts the repetitions has a `witness` instead.
   */
  readonly repeatable?: boolean;
}

/**
 * The handler of a plugin that only reviews outcomes of the rest of the chain, and may change them. The chain
 * recognises such handlers, and calls consecutive ones in a loop.
 * @param reviewLate used for outcomes that arrive in a later turn of the event loop than the query
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

/** A reviewer that may also refuse a query before the plugins behind it get it. */
export interface Gatekeeper extends Reviewer {
  /** Returns what becomes of a refused query, `undefined` for one that goes on. */
  readonly admit: (query: Query) => Outcome | undefined;
}

/**
 * The handler of a plugin that refuses some queries, and reviews the outcome of the others. Answers behind it may be repeated if the plugin
 * has a witness that says so for each client (`AnswerWitness.admits`).
 */
export function gatekeeper(admit: Gatekeeper["admit"], review: Review): Gatekeeper {
  const handle: Handler = (query, next) => admit(query) ?? afterNext(next(query), query, review);
  return Object.assign(handle, { admit, review, reviewLate: review, isRepeatable: false });
}

export function isGatekeeper(handle: Handler): handle is Gatekeeper {
  return "admit" in handle;
}

export function isReviewer(handle: Handler): handle is Reviewer {
  return "review" in handle;
}

/**
 * Applies `after` to the outcome of the rest of the chain, now or when it arrives. `after` should be one function
 * made at set-up, not a closure per query.
 */
export function afterNext(
  outcome: Outcome | Promise<Outcome>,
  query: Query,
  after: (outcome: Outcome, query: Query) => Outcome,
): Outcome | Promise<Outcome> {
  if (!(outcome instanceof Promise)) return after(outcome, query);
  const { link } = query;
  // A promise from elsewhere may reject: the chain guards it.
  if (link === undefined || outcome !== query.pending)
    return outcome.then((settled) => after(settled, query));
  // Neighbouring plugins share one object. So a plugin that calls `afterNext` on the promise of the rest of the
  // chain, and returns the result, adds to the same object as the plugins in front of it.
  const late = LateOutcome.of(query, outcome, NEVER_REJECTED);
  late.add(link, after);
  query.pending = late;
  return late;
}

const NEVER_REJECTED: LateFaults = Object.freeze({
  panicked: (error: unknown) =>
    new Failure(Rcode.SERVFAIL, error instanceof Error ? error : new Error(String(error))),
});
