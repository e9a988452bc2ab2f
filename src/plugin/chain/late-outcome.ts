/**
 * An outcome that arrives later, made for the thousands of queries that wait for an upstream: one object for all
 * consecutive plugins. A promise for each of them would take more memory, and time when the answer arrives.
 */
import type { Outcome } from "../query/outcome.ts";
import type { ChainLink, LateSteps, Query } from "../query/query.ts";

/** Called when the outcome arrives. */
export interface LateFollower {
  settle(outcome: Outcome): void;
}

/** Decides what a rejected promise turns into. An object, since a function per query would take memory and time. */
export interface LateFaults {
  panicked(error: unknown, query: Query): Outcome;
}

/**
 * Looks like a Promise to `instanceof`, but has none of its state. A real one would be larger, and needs two
 * closures.
 */
const PromiseShape = function PromiseShape(): void {
  // No state to set up.
} as unknown as new () => Promise<Outcome>;
PromiseShape.prototype = Promise.prototype;

/**
 * To all code but the chain this is a promise that never rejects: plugins `await` it, or call `then`. Its maker calls
 * {@link settle} once, in any turn of the event loop: steps and followers run in that call.
 */
export class LateOutcome extends PromiseShape implements LateFollower {
  /** The query of this outcome. */
  readonly query: Query;
  /** {@link SETTLED} once the steps have run. */
  #steps: LateSteps | undefined;
  /** The follower; the outcome once that has arrived. One field for both, as thousands may wait. */
  #end: LateFollower | Outcome | undefined;

  constructor(query: Query) {
    super();
    this.query = query;
  }

  /**
   * Wraps a promise of `query`'s outcome. Returns the promise itself if plugins may still add steps to it; their
   * steps run before any waiting code.
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

  /** Adds a plugin's step, after all present ones. */
  add(link: ChainLink, after: (outcome: Outcome, query: Query) => Outcome): void {
    const settled = LateOutcome.#settled(this);
    if (settled === undefined) this.#steps = (this.#steps ?? link.steps).with(link, after);
    else this.#end = link.follow(after, settled, this.query);
  }

  /** Calls the follower with the outcome, after all steps. */
  follow(follower: LateFollower): void {
    const settled = LateOutcome.#settled(this);
    if (settled !== undefined) follower.settle(settled);
    else if (this.#end === undefined) this.#end = follower;
    else this.#end = new TwoFollowers(this.#end as LateFollower, follower);
  }

  /** Sets the outcome. Further calls do nothing. */
  settle(outcome: Outcome): void {
    if (this.#steps === SETTLED) return;
    const follower = this.#end as LateFollower | undefined;
    const settled = this.#steps === undefined ? outcome : this.#steps.take(outcome, this.query);
    this.#steps = SETTLED;
    this.#end = settled;
    follower?.settle(settled);
  }

  /** Like {@link settle}, with an outcome of the chain that is available now or later. */
  settleWith(outcome: Outcome | Promise<Outcome>): void {
    if (!(outcome instanceof Promise)) this.settle(outcome);
    else if (outcome instanceof LateOutcome) outcome.follow(this);
    // Promises of the chain never reject.
    else void outcome.then((settled) => this.settle(settled));
  }

  // biome-ignore lint/suspicious/noThenProperty: it has to be awaitable.
  override then<Fulfilled = Outcome, Rejected = never>(
    onFulfilled?: ((outcome: Outcome) => Fulfilled | PromiseLike<Fulfilled>) | null,
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    const outcome =
      LateOutcome.#settled(this) ??
      new Promise<Outcome>((resolve) => this.follow({ settle: (settled) => resolve(settled) }));
    return Promise.resolve(outcome).then(onFulfilled, onRejected);
  }

  /** Static, because a class with private methods adds a brand to each object. */
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
 * The steps of consecutive plugins for a late outcome, the nearest one first. Queries that take the same way share
 * such rows, so each row is made once: a row refers to the longer rows that begin with it.
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
    // A caller that creates closures per query must also create a row per query.
    if (this.#longer.length < MOST_KNOWN) this.#longer.push(row);
    return row;
  }

  take(outcome: Outcome, query: Query): Outcome {
    const before = this.#before === undefined ? outcome : this.#before.take(outcome, query);
    return this.#link === undefined ? before : this.#link.follow(this.#after, before, query);
  }
}

/** Rows remembered as continuations of one: a plugin has only a handful of steps. */
const MOST_KNOWN = 8;
