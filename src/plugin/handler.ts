/** What a plugin does with queries. */
import type { Outcome } from "./outcome.ts";
import type { ChainLink, LateSteps, Query } from "./query.ts";

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
  if (query.lateSteps !== undefined) {
    query.lateSteps.add(link, after);
    return outcome;
  }
  const steps = new StepsInARow(query, new LateStep(link, after));
  const followed = outcome.then((settled) => steps.take(settled));
  query.pending = followed;
  query.lateSteps = steps;
  return followed;
}

/** What one plugin does with a late outcome. */
class LateStep {
  readonly link: ChainLink;
  readonly after: (outcome: Outcome, query: Query) => Outcome;
  next: LateStep | undefined;

  constructor(link: ChainLink, after: (outcome: Outcome, query: Query) => Outcome) {
    this.link = link;
    this.after = after;
  }
}

/**
 * What neighbouring plugins do with a late outcome, the one nearest to it first: one promise for all of them. So who calls `afterNext` for
 * what the rest of the chain promised, and hands on what it gives, cannot tell it from what the plugins in front make of it.
 */
class StepsInARow implements LateSteps {
  readonly #query: Query;
  readonly #first: LateStep;
  #last: LateStep;

  constructor(query: Query, first: LateStep) {
    this.#query = query;
    this.#first = first;
    this.#last = first;
  }

  add(link: ChainLink, after: (outcome: Outcome, query: Query) => Outcome): void {
    const step = new LateStep(link, after);
    this.#last.next = step;
    this.#last = step;
  }

  take(outcome: Outcome): Outcome {
    let settled = outcome;
    for (let step: LateStep | undefined = this.#first; step !== undefined; step = step.next)
      settled = step.link.follow(step.after, settled, this.#query);
    return settled;
  }
}
