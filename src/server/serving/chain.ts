/**
 * The plugins of one server block, linked into one function. The links isolate the plugins: an exception becomes a
 * Failure with the plugin's name, and no query waits while it refers to a borrowed buffer.
 */

import { Rcode } from "../../dns/numbers.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import {
  afterNext,
  type Gatekeeper,
  type Handler,
  isGatekeeper,
  isReviewer,
  type Next,
  type Review,
  type Reviewer,
} from "../../plugin/chain/handler.ts";
import { type LateFaults, LateOutcome, StepRow } from "../../plugin/chain/late-outcome.ts";
import { isInChain, type PlacedPlugin } from "../../plugin/contract/plugin-instance.ts";
import { Failure, NoNextPluginError, type Outcome } from "../../plugin/query/outcome.ts";
import type { ChainLink, Query } from "../../plugin/query/query.ts";
import type { AnswerWitness } from "../../plugin/query/repetition.ts";
import type { Reply } from "../../plugin/query/reply.ts";

export interface ChainPlugin {
  readonly name: string;
  readonly handle: Handler;
  /** See `PluginInstance.recordsOnly`. */
  readonly recordsOnly?: boolean | undefined;
}

/** Called for every plugin that threw, rejected, or returned a value that is not an outcome. */
export type PanicObserver = (plugin: string, error: Error, query: Query) => void;

/** @returns the head of the chain, `undefined` without plugins */
export function buildChain(plugins: readonly ChainPlugin[], onPanic: PanicObserver): Next | undefined {
  const last = plugins.at(-1);
  if (last === undefined) return undefined;
  let next: Next = noNextPlugin(last.name);
  let row: ReviewRow | undefined;
  for (const { name, handle, recordsOnly = false } of [...plugins].reverse()) {
    const link = new Link(name, onPanic, recordsOnly);
    if (isGatekeeper(handle)) {
      // Plugins in front of it review refusals, too: their row ends here.
      next = gated(link, handle, next);
      row = undefined;
      continue;
    }
    const nested = linked(link, handle, next);
    row = isReviewer(handle)
      ? { inner: row?.inner ?? next, nested, steps: [...(row?.steps ?? []), { link, handle }] }
      : undefined;
    next = row === undefined ? nested : reviewed(row);
  }
  return next;
}

/**
 * The chain of queries: the plugins of a block that handle them. A block whose plugins only review queries has a
 * chain as well: it ends at once, and its queries are not REFUSED but fail, as in CoreDNS.
 */
export function buildQueryChain(placed: readonly PlacedPlugin[], onPanic: PanicObserver): Next | undefined {
  const plugins = placed.flatMap(({ name, instance }) =>
    instance.handle === undefined
      ? []
      : [{ name, handle: instance.handle, recordsOnly: instance.recordsOnly }],
  );
  const last = placed.findLast(({ instance }) => isInChain(instance));
  return buildChain(plugins, onPanic) ?? (last && noNextPlugin(last.name));
}

/**
 * The plugins that must be informed of repeated answers: those in front of the first plugin that does more than
 * review.
 * @returns `undefined` if one of them has to see each answer
 */
export function witnessesOf(placed: readonly PlacedPlugin[]): readonly AnswerWitness[] | undefined {
  const witnesses: AnswerWitness[] = [];
  for (const { instance } of placed) {
    if (instance.handle === undefined) continue;
    if (!isReviewer(instance.handle)) return witnesses;
    if (instance.witness !== undefined) witnesses.push(instance.witness);
    else if (!instance.handle.isRepeatable) return undefined;
  }
  return undefined;
}

/** The chain of dynamic updates: the plugins of a block that handle them. */
export function buildUpdateChain(placed: readonly PlacedPlugin[], onPanic: PanicObserver): Next | undefined {
  const plugins = placed.flatMap(({ name, instance }) =>
    instance.handleUpdate === undefined ? [] : [{ name, handle: instance.handleUpdate }],
  );
  return buildChain(plugins, onPanic);
}

/** A plugin broke its contract. */
export class PluginPanic extends Error {
  override readonly name = "PluginPanic";
  readonly plugin: string;

  constructor(plugin: string, cause: unknown) {
    super(`plugin ${plugin} failed: ${messageOf(cause)}`, { cause });
    this.plugin = plugin;
  }
}

function noNextPlugin(name: string): Next {
  const error = new NoNextPluginError(name);
  return () => new Failure(Rcode.SERVFAIL, error);
}

/** A plugin's place in the chain. */
class Link implements ChainLink, LateFaults {
  readonly name: string;
  /** Queries that no client sent bypass its handler. */
  readonly recordsOnly: boolean;
  readonly steps = StepRow.empty();
  readonly #onPanic: PanicObserver;

  constructor(name: string, onPanic: PanicObserver, recordsOnly: boolean) {
    this.name = name;
    this.recordsOnly = recordsOnly;
    this.#onPanic = onPanic;
  }

  follow(after: Review, outcome: Outcome, query: Query): Outcome {
    try {
      return this.settled(after(outcome, query), query);
    } catch (error) {
      return this.panicked(error, query);
    }
  }

  /**
   * Like {@link follow}, for an outcome of the next link: an outcome that is returned unchanged needs no second
   * check.
   */
  review(review: Review, outcome: Outcome, query: Query): Outcome {
    try {
      const made = review(outcome, query);
      return made === outcome ? made : this.settled(made, query);
    } catch (error) {
      return this.panicked(error, query);
    }
  }

  settled(outcome: Outcome, query: Query): Outcome {
    if (!isOutcome(outcome)) return this.panicked(new TypeError("handler returned no outcome"), query);
    if (outcome.kind !== "dropped") {
      if (outcome.plugin === undefined) outcome.plugin = this.name;
      // Another plugin's answer: this plugin's part in it is unknown.
      else if (outcome.kind === "reply") outcome.basis = undefined;
    }
    return query.wasRenamed && outcome.kind === "reply" ? this.#readdressed(outcome, query) : outcome;
  }

  panicked(cause: unknown, query: Query): Failure {
    const panic = new PluginPanic(this.name, cause);
    this.#onPanic(this.name, panic, query);
    const failure = new Failure(Rcode.SERVFAIL, panic);
    failure.plugin = this.name;
    return failure;
  }

  /** The plugin queried another name on the query's behalf: restores the query's own question. */
  #readdressed(reply: Reply, query: Query): Outcome {
    try {
      reply.answerFor(query);
      return reply;
    } catch (error) {
      return this.panicked(error, query);
    }
  }
}

function linked(link: Link, handle: Handler, next: Next): Next {
  function traced(query: Query): Outcome | Promise<Outcome> {
    const { trace, spans } = query;
    trace?.enter(link.name, query);
    const span = spans?.enter(link.name) ?? 0;
    const isPassedBy = link.recordsOnly && trace?.leavesNoMark === true;
    const outcome = isPassedBy ? next(query) : handle(query, next);
    if (!(outcome instanceof Promise)) {
      trace?.leave(link.name, describeOutcome(outcome));
      spans?.leave(span, outcome);
      return outcome;
    }
    return outcome.then((later) => {
      trace?.leave(link.name, describeOutcome(later));
      spans?.leave(span, later);
      return later;
    });
  }

  return (query) => {
    const outer = query.link;
    query.link = link;
    let outcome: Outcome | Promise<Outcome>;
    try {
      outcome = query.trace === undefined && query.spans === undefined ? handle(query, next) : traced(query);
    } catch (error) {
      query.link = outer;
      return link.panicked(error, query);
    }
    query.link = outer;
    if (!(outcome instanceof Promise)) return link.settled(outcome, query);
    // A plugin that returns the promise of the next one, or follows it with `afterNext`, needs no second guard.
    if (outcome === query.pending) return outcome;
    const watched = LateOutcome.of(query, outcome, link);
    watched.add(link, unchanged);
    query.pending = watched;
    return watched;
  };
}

/** A plugin that refuses a query, or reviews its outcome. */
function gated(link: Link, handle: Gatekeeper, next: Next): Next {
  const traced = linked(link, handle, next);

  return (query) => {
    if (query.trace !== undefined || query.spans !== undefined) return traced(query);
    let refused: Outcome | undefined;
    try {
      refused = handle.admit(query);
    } catch (error) {
      return link.panicked(error, query);
    }
    if (refused !== undefined) return link.settled(refused, query);
    const outcome = next(query);
    if (!(outcome instanceof Promise)) return link.review(handle.review, outcome, query);
    const outer = query.link;
    query.link = link;
    const late = afterNext(outcome, query, handle.reviewLate);
    query.link = outer;
    return late;
  };
}

/** Consecutive plugins that only review outcomes. */
interface ReviewRow {
  /** The rest of the chain behind the last of them. */
  readonly inner: Next;
  /** The same plugins as nested calls, for a trace that records which plugin a query is in. */
  readonly nested: Next;
  /** In calling order: the plugin nearest to `inner` first. */
  readonly steps: readonly { readonly link: Link; readonly handle: Reviewer }[];
}

/** One call instead of nested ones: the plugins in front of `cache` in the usual Corefile only review answers. */
function reviewed({ inner, nested, steps }: ReviewRow): Next {
  const row = new RowLink();
  function reviewLate(late: Outcome, query: Query): Outcome {
    let outcome = late;
    for (const { link, handle } of steps) outcome = link.review(handle.reviewLate, outcome, query);
    return outcome;
  }

  return (query) => {
    if (query.trace !== undefined || query.spans !== undefined) return nested(query);
    let outcome = inner(query);
    if (outcome instanceof Promise) {
      const outer = query.link;
      query.link = row;
      const late = afterNext(outcome, query, reviewLate);
      query.link = outer;
      return late;
    }
    for (const { link, handle } of steps) outcome = link.review(handle.review, outcome, query);
    return outcome;
  };
}

/** The place of a whole row, as one step of a late outcome: each of its plugins is guarded by its own link. */
class RowLink implements ChainLink {
  readonly steps = StepRow.empty();

  follow(after: Review, outcome: Outcome, query: Query): Outcome {
    return after(outcome, query);
  }
}

/** The review of a plugin without one: the link checks the outcome. */
function unchanged(outcome: Outcome): Outcome {
  return outcome;
}

function isOutcome(value: unknown): value is Outcome {
  return (
    typeof value === "object" &&
    value !== null &&
    "kind" in value &&
    (value.kind === "reply" || value.kind === "failed" || value.kind === "dropped" || value.kind === "stream")
  );
}

function describeOutcome(outcome: Outcome): string {
  return outcome.kind === "dropped" ? "dropped" : `${outcome.kind} ${outcome.rcode}`;
}
