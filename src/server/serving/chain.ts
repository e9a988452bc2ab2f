/**
 * The plugins of one server block, linked into one function. The links keep plugins apart: what one throws becomes a Failure
 * with its name on it, and no query waits with borrowed octets.
 */
import { Rcode } from "../../dns/numbers.ts";
import type { Handler, Next } from "../../plugin/handler.ts";
import { LateOutcome, StepRow } from "../../plugin/late-outcome.ts";
import { Failure, type Outcome } from "../../plugin/outcome.ts";
import type { PlacedPlugin } from "../../plugin/plugin-instance.ts";
import type { ChainLink, Query } from "../../plugin/query.ts";
import type { Reply } from "../../plugin/reply.ts";

export interface ChainPlugin {
  readonly name: string;
  readonly handle: Handler;
}

/** Told of every plugin that threw or rejected, or returned something that is no outcome. */
export type PanicObserver = (plugin: string, error: Error, query: Query) => void;

/** @returns the head of the chain, `undefined` when there is no plugin. */
export function buildChain(plugins: readonly ChainPlugin[], onPanic: PanicObserver): Next | undefined {
  const last = plugins.at(-1);
  if (last === undefined) return undefined;
  let next: Next = noNextPlugin(last.name);
  for (const plugin of [...plugins].reverse()) next = link(plugin, next, onPanic);
  return next;
}

/** The chain of queries: the plugins of a block that handle them. */
export function buildQueryChain(placed: readonly PlacedPlugin[], onPanic: PanicObserver): Next | undefined {
  const plugins = placed.flatMap(({ name, instance }) =>
    instance.handle === undefined ? [] : [{ name, handle: instance.handle }],
  );
  return buildChain(plugins, onPanic);
}

/** The chain of dynamic updates: the plugins of a block that know of them. */
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
    super(`plugin ${plugin} failed: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.plugin = plugin;
  }
}

function noNextPlugin(name: string): Next {
  const error = new Error(`plugin/${name}: no next plugin found`);
  return () => new Failure(Rcode.SERVFAIL, error);
}

function link({ name, handle }: ChainPlugin, next: Next, onPanic: PanicObserver): Next {
  function panicked(cause: unknown, query: Query): Failure {
    const panic = new PluginPanic(name, cause);
    onPanic(name, panic, query);
    const failure = new Failure(Rcode.SERVFAIL, panic);
    failure.plugin = name;
    return failure;
  }

  function settled(outcome: Outcome, query: Query): Outcome {
    if (!isOutcome(outcome)) return panicked(new TypeError("handler returned no outcome"), query);
    if (outcome.kind !== "dropped" && outcome.plugin === undefined) outcome.plugin = name;
    return query.wasRenamed && outcome.kind === "reply" ? readdressed(outcome, query) : outcome;
  }

  /** The plugin asked something else on the query's behalf: from here on its question is the query's again. */
  function readdressed(reply: Reply, query: Query): Outcome {
    try {
      reply.answerFor(query);
      return reply;
    } catch (error) {
      return panicked(error, query);
    }
  }

  function traced(query: Query): Outcome | Promise<Outcome> {
    const { trace, spans } = query;
    trace?.enter(name, query);
    const span = spans?.enter(name) ?? 0;
    const outcome = handle(query, next);
    if (!(outcome instanceof Promise)) {
      trace?.leave(name, describeOutcome(outcome));
      spans?.leave(span, outcome);
      return outcome;
    }
    return outcome.then((later) => {
      trace?.leave(name, describeOutcome(later));
      spans?.leave(span, later);
      return later;
    });
  }

  const self: ChainLink = {
    steps: StepRow.empty(),
    follow(after, outcome, query) {
      try {
        return settled(after(outcome, query), query);
      } catch (error) {
        return panicked(error, query);
      }
    },
  };

  return (query) => {
    const outer = query.link;
    query.link = self;
    let outcome: Outcome | Promise<Outcome>;
    try {
      outcome = query.trace === undefined && query.spans === undefined ? handle(query, next) : traced(query);
    } catch (error) {
      query.link = outer;
      return panicked(error, query);
    }
    query.link = outer;
    if (!(outcome instanceof Promise)) return settled(outcome, query);
    // A plugin that hands on the promise of the one behind it, or follows it with `afterNext`, needs no second watch over it.
    if (outcome === query.pending) return outcome;
    const watched = LateOutcome.of(query, outcome, (error) => panicked(error, query));
    watched.add(self, unchanged);
    query.pending = watched;
    return watched;
  };
}

/** What a plugin does that only answers: the link looks at it. */
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
