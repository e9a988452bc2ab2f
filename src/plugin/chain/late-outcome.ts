/**
 * An outcome that comes later, made for the thousands of queries that wait for an upstream: one object for all plugins in a row,
 * where a promise for each of them would take a kilobyte, and 1 µs when the answer is there.
 */
import type { Outcome } from "../query/outcome.ts";
import type { ChainLink, LateSteps, Query } from "../query/query.ts";

/** Who goes on when the outcome is there. */
export interface LateFollower {
  settle(outcome: Outcome): void;
}

/** Who says what becomes of a promise that rejects. An object, since a function for each query would take memory and time. */
export interface LateFaults {
  panicked(error: unknown, query: Query): Outcome;
}

/** Makes nothing of a promise but what it looks like. A real one would be larger by half, and needs two closures to be made. */
const PromiseShape = function PromiseShape(): void {
  // There is nothing to set up.
} as unknown as new () => Promise<Outcome>;
PromiseShape.prototype = Promise.prototype;

/**
 * To everybody but the chain it is a promise that never rejects: plugins `await` it, or call `then`. Who makes one calls
 * {@link settle} once, in a turn of the event loop of its choice: steps and followers run in that call.
 */
export class LateOutcome extends PromiseShape implements LateFollower {
  /** Whose outcome it is. */
  readonly query: Query;
  /** {@link SETTLED} when all is done. */
  #steps: LateSteps | undefined;
  /** Who follows; from then on the outcome. One field for both, as thousands may wait. */
  #end: LateFollower | Outcome | undefined;

  constructor(query: Query) {
    super();
    this.query = query;
  }

  /**
   * The outcome of a promise, as that of `query`: the promise itself where it is one that plugins may still add to, and what they add comes
   * before anybody who waits for it.
   */
  static of(query: Query, promise: Promise<Outcome>, faults: LateFaults): LateOutcome {
    const isLate = promise instanceof LateOutcome;
    const isOwn = isLate && promise.query === query;
    if (isOwn && (promise.#end === undefined || promise.#steps === SETTLED)) return promise;
    const late = new LateOutcome(query);
    if (isLate) promise.follow(late);
    else followPromise(promise, late, faults);
    return late;
  }

  /** Has a plugin do something with the outcome, after all that were added before. */
  add(link: ChainLink, after: (outcome: Outcome, query: Query) => Outcome): void {
    const settled = LateOutcome.#settled(this);
    if (settled === undefined) this.#steps = (this.#steps ?? link.steps).with(link, after);
    else this.#end = link.follow(after, settled, this.query);
  }

  /** Tells the follower of the outcome, when all plugins have done with it. */
  follow(follower: LateFollower): void {
    const settled = LateOutcome.#settled(this);
    if (settled !== undefined) follower.settle(settled);
    else if (this.#end === undefined) this.#end = follower;
    else this.#end = new TwoFollowers(this.#end as LateFollower, follower);
  }

  /** The outcome is there. Further calls do nothing. */
  settle(outcome: Outcome): void {
    if (this.#steps === SETTLED) return;
    const follower = this.#end as LateFollower | undefined;
    const settled = this.#steps === undefined ? outcome : this.#steps.take(outcome, this.query);
    this.#steps = SETTLED;
    this.#end = settled;
    follower?.settle(settled);
  }

  /** As {@link settle}, with what the chain says now or later. */
  settleWith(outcome: Outcome | Promise<Outcome>): void {
    if (!(outcome instanceof Promise)) this.settle(outcome);
    else if (outcome instanceof LateOutcome) outcome.follow(this);
    // That of the chain never rejects.
    else void outcome.then((settled) => this.settle(settled));
  }

  // biome-ignore lint/suspicious/noThenProperty: it is to be awaited.
  override then<Fulfilled = Outcome, Rejected = never>(
    onFulfilled?: ((outcome: Outcome) => Fulfilled | PromiseLike<Fulfilled>) | null,
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    const outcome =
      LateOutcome.#settled(this) ??
      new Promise<Outcome>((resolve) => this.follow({ settle: (settled) => resolve(settled) }));
    return Promise.resolve(outcome).then(onFulfilled, onRejected);
  }

  /** Not of the object: a class with private methods leaves a mark in each. */
  static #settled(late: LateOutcome): Outcome | undefined {
    return late.#steps === SETTLED ? (late.#end as Outcome) : undefined;
  }
}

const SETTLED: LateSteps = Object.freeze({ with: () => SETTLED, take: (outcome: Outcome) => outcome });

function followPromise(promise: Promise<Outcome>, late: LateOutcome, faults: LateFaults): void {
  promise.then(
    (outcome) => late.settle(outcome),
    (error: unknown) => late.settle(faults.panicked(error, late.query)),
  );
}

class TwoFollowers implements LateFollower {
  readonly #first: LateFollower;
  readonly #second: LateFollower;

  constructor(first: LateFollower, second: LateFollower) {
    this.#first = first;
    this.#second = second;
  }

  settle(outcome: Outcome): void {
    this.#first.settle(outcome);
    this.#second.settle(outcome);
  }
}

/**
 * What plugins in a row do with a late outcome, the one nearest to it first. Queries that go the same way share such rows, so they are
 * made once: a row knows the longer ones that begin with it.
 */
export class StepRow implements LateSteps {
  readonly #before: StepRow | undefined;
  readonly #link: ChainLink | undefined;
  readonly #after: (outcome: Outcome, query: Query) => Outcome;
  readonly #longer: StepRow[] = [];

  private constructor(
    before: StepRow | undefined,
    link: ChainLink | undefined,
    after: (outcome: Outcome, query: Query) => Outcome,
  ) {
    this.#before = before;
    this.#link = link;
    this.#after = after;
  }

  /** The row that all others begin with. */
  static empty(): StepRow {
    return new StepRow(undefined, undefined, (outcome) => outcome);
  }

  with(link: ChainLink, after: (outcome: Outcome, query: Query) => Outcome): StepRow {
    for (const row of this.#longer) if (row.#link === link && row.#after === after) return row;
    const row = new StepRow(this.#link === undefined ? undefined : this, link, after);
    // Who makes a function for each query has a row for each query, too.
    if (this.#longer.length < MOST_KNOWN) this.#longer.push(row);
    return row;
  }

  take(outcome: Outcome, query: Query): Outcome {
    const before = this.#before === undefined ? outcome : this.#before.take(outcome, query);
    return this.#link === undefined ? before : this.#link.follow(this.#after, before, query);
  }
}

/** Rows that are known to continue one: a plugin does one of a handful of things. */
const MOST_KNOWN = 8;
