/**
 * Isolates external plugins. An exception, a wrong result or a hang costs only the query, the hook or the
 * configuration at hand, and is reported with the plugin's name.
 */
import { messageOf } from "../../lib/text/message-of.ts";
import type { Clock } from "../../lib/time/clock.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";
import {
  afterwards,
  type Handler,
  isReviewer,
  type Review,
  type Reviewer,
} from "../../plugin/chain/handler.ts";
import type { ConfigSchema } from "../../plugin/config/schema.ts";
import { type PluginDefinition, SetupError } from "../../plugin/contract/define-plugin.ts";
import type { PluginInstance } from "../../plugin/contract/plugin-instance.ts";
import type { Site } from "../../plugin/contract/site.ts";
import { Failure, type Outcome, ReplyStream } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";
import type { AnswerWitness } from "../../plugin/query/repetition.ts";
import { Reply } from "../../plugin/query/reply.ts";
import { PluginPanic } from "../serving/chain.ts";
import { SilencedMetrics } from "./silenced-metrics.ts";
import { QueryGuard, TimeBudget } from "./time-budget.ts";
import { SilencedLog, traceWithoutMark, UnseenQueries } from "./unseen-queries.ts";

/**
 * Time limits of the hooks in milliseconds: a reload waits for `start` and `warmUp`, and the end of the process for
 * the others.
 */
const HOOK_BOUNDS = { start: 60_000, warmUp: 60_000, drain: 60_000, stop: 5_000, shutdown: 5_000 } as const;

export const PLUGIN_PANICS = {
  name: "portolan_plugin_panics_total",
  help: "Failures of added plugins (they threw, rejected, or returned something other than an outcome), and of any plugin in its background work.",
  labels: ["plugin"],
} as const;

type BoundedHook = keyof typeof HOOK_BOUNDS;

/**
 * Wraps a plugin so that its faults stay its own.
 * @param budget milliseconds that its handler may spend on a query, without the time of the rest of the chain; 0 for
 * no bound. A handler that blocks the thread cannot be interrupted.
 */
export function isolated<T>(definition: PluginDefinition<T>, budget: number): PluginDefinition<T> {
  // A plugin that is created for every block cannot be isolated: only built-in plugins do that.
  const own: Partial<PluginDefinition<T>> & Pick<PluginDefinition<T>, "name" | "summary"> = { ...definition };
  delete own.createForEveryBlock;
  const unseen = new UnseenQueries();
  return {
    ...own,
    config: isolatedSchema(definition),
    ...(definition.configure !== undefined && {
      configure(config, settings, setup) {
        try {
          definition.configure?.(config, settings, setup);
        } catch (error) {
          setup.report.error("PLUGIN_FAILED", setup.span, failedToRead(definition.name, error));
        }
      },
    }),
    ...(definition.claims !== undefined && {
      claims(directive) {
        try {
          return definition.claims?.(directive);
        } catch {
          // Lint does without it.
          return undefined;
        }
      },
    }),
    ...(definition.create !== undefined && {
      create(config, site) {
        const silenced = silencedSite(site, unseen);
        const instance = attempt(site, () => definition.create?.(config, silenced));
        return behindWall(checkedInstance(instance, site), { budget, site, unseen });
      },
    }),
  };
}

function isolatedSchema<T>({ name, config }: PluginDefinition<T>): ConfigSchema<T> {
  return {
    description: config.description,
    parse(occurrences, context) {
      const fail = (message: string): undefined => {
        const [first] = occurrences;
        if (first !== undefined) context.report.error("PLUGIN_FAILED", first.name.span, message);
        return undefined;
      };
      try {
        const configs: unknown = config.parse(occurrences, context);
        if (configs === undefined || Array.isArray(configs)) return configs;
        return fail(`plugin '${name}' returned no list of configurations`);
      } catch (error) {
        return fail(failedToRead(name, error));
      }
    },
  };
}

/** Counters and log lines of the plugin are discarded for queries that no client sent. */
function silencedSite(site: Site, unseen: UnseenQueries): Site {
  return {
    ...site,
    log: new SilencedLog(site.log, unseen),
    processLog: new SilencedLog(site.processLog, unseen),
    metrics: new SilencedMetrics(site.metrics, () => unseen.trace !== undefined),
  };
}

function failedToRead(name: string, error: unknown): string {
  return `plugin '${name}' failed to read this: ${oneLine(error)}`;
}

function attempt<R>(site: Site, run: () => R): R {
  try {
    return run();
  } catch (error) {
    throw named(site, error);
  }
}

/** The error that refuses a start, with the plugin's name in front. */
function named({ plugin }: Site, error: unknown): SetupError {
  const notes = error instanceof SetupError ? error.notes : [];
  return new SetupError(`plugin/${plugin}: ${oneLine(error)}`, { cause: error, notes });
}

function checkedInstance(instance: unknown, site: Site): PluginInstance {
  const problem = instanceProblem(instance);
  if (problem !== undefined) throw new SetupError(`plugin/${site.plugin}: ${problem}`);
  return instance ?? {};
}

function instanceProblem(instance: unknown): string | undefined {
  if (instance === undefined) return undefined;
  if (typeof instance !== "object" || instance === null) return "create returned no instance";
  if (instance instanceof Promise) return "create returned a promise: move the asynchronous work to start";
  if ("handle" in instance && instance.handle !== undefined && typeof instance.handle !== "function")
    return "its handle is not a function";
  return undefined;
}

interface Wall {
  readonly budget: number;
  readonly site: Site;
  readonly unseen: UnseenQueries;
}

/** Members are called on the instance itself, because private fields exist only there. */
function behindWall(instance: PluginInstance, { budget, site, unseen }: Wall): PluginInstance {
  const panics = site.metrics.counter(PLUGIN_PANICS).slot(site.plugin);
  const tolerate = <R>(run: () => R, otherwise: R): R => {
    try {
      return run();
    } catch (error) {
      panics.increment();
      site.log.error(oneLine(error));
      return otherwise;
    }
  };
  const bounded = async (hook: BoundedHook): Promise<void> => {
    try {
      await within(HOOK_BOUNDS[hook], site.clock, hook, () => instance[hook]?.());
    } catch (error) {
      throw hook === "start" ? named(site, error) : error;
    }
  };
  const overrides: PluginInstance = {
    ...(instance.handle !== undefined && {
      handle: isReviewer(instance.handle)
        ? guardedReviewer(instance.handle, unseen, panics)
        : unseenHandler(
            guardedHandler(instance.handle.bind(instance), new TimeBudget(budget, site), panics),
            unseen,
          ),
    }),
    start: () => bounded("start"),
    warmUp: () => bounded("warmUp"),
    stop: () => bounded("stop"),
    shutdown: () => bounded("shutdown"),
    drain: () => bounded("drain").catch((error: unknown) => site.log.error(oneLine(error))),
    ready: () => tolerate(() => instance.ready?.() ?? true, false),
    describeState: () => tolerate(() => instance.describeState?.().map(String) ?? [], []),
    faults: () =>
      tolerate(
        () =>
          instance.faults?.().map(({ subject, reason }) => ({
            subject: String(subject),
            reason: String(reason),
          })) ?? [],
        [],
      ),
    accepts(query) {
      try {
        return unseen.during(query, () => instance.accepts?.(query) ?? true);
      } catch (error) {
        panics.increment();
        throw new PluginPanic(site.plugin, error);
      }
    },
    provideMetadata: (query) =>
      tolerate(() => unseen.during(query, () => instance.provideMetadata?.(query)), undefined),
    unrouted: (query, outcome) =>
      tolerate(() => unseen.during(query, () => instance.unrouted?.(query, outcome)), undefined),
    forget: (names) => tolerate(() => instance.forget?.(names), undefined),
    witness: instance.witness && tolerantWitness(instance.witness, tolerate),
  };
  return delegate(instance, overrides);
}

function tolerantWitness(
  witness: AnswerWitness,
  tolerate: <R>(run: () => R, otherwise: R) => R,
): AnswerWitness {
  return {
    repeated: (repetition) => tolerate(() => witness.repeated(repetition), undefined),
    ...(witness.answeredAt !== undefined && {
      answeredAt: (at, listener) => tolerate(() => witness.answeredAt?.(at, listener), undefined),
    }),
  };
}

/** Like `instance`, with some members replaced; missing members stay missing. */
function delegate(instance: PluginInstance, overrides: PluginInstance): PluginInstance {
  const bound = new Map<string | symbol, unknown>();
  return new Proxy(instance, {
    get(target, key) {
      const own: unknown = Reflect.get(target, key, target);
      if (own === undefined) return undefined;
      const override: unknown = Reflect.get(overrides, key);
      if (override !== undefined) return override;
      if (typeof own !== "function") return own;
      if (!bound.has(key)) bound.set(key, own.bind(target));
      return bound.get(key);
    },
  });
}

function guardedHandler(handle: Handler, budget: TimeBudget, panics: { increment(): void }): Handler {
  const panicked = (error: unknown): never => {
    panics.increment();
    throw error;
  };
  return (query, next) => {
    const guard = new QueryGuard(budget, next);
    try {
      const outcome = guard.run(handle, query);
      if (!(outcome instanceof Promise)) return checkedOutcome(outcome, query);
      if (guard.passedOn(outcome)) return outcome;
      return outcome.then((settled) => checkedOutcome(settled, query)).catch(panicked);
    } catch (error) {
      return panicked(error);
    }
  };
}

/**
 * A plugin that only reviews outcomes stays a reviewer, so answers may still be repeated past it. It cannot wait, and
 * needs no time limit.
 */
function guardedReviewer(
  { review, reviewLate, isRepeatable }: Reviewer,
  unseen: UnseenQueries,
  panics: { increment(): void },
): Reviewer {
  const guarded =
    (look: Review): Review =>
    (outcome, query) => {
      try {
        return checkedOutcome(
          unseen.during(query, () => look(outcome, query)),
          query,
        );
      } catch (error) {
        panics.increment();
        throw error;
      }
    };
  return afterwards(guarded(review), guarded(reviewLate), { repeatable: isRepeatable });
}

function unseenHandler(handle: Handler, unseen: UnseenQueries): Handler {
  return (query, next) => {
    const trace = traceWithoutMark(query);
    if (trace === undefined) return handle(query, next);
    return unseen.handle(trace, (behind) => handle(query, behind), next);
  };
}

/** @throws TypeError for a result that is not an outcome of this query */
function checkedOutcome(outcome: unknown, query: Query): Outcome {
  if (outcome instanceof Reply) {
    if (outcome.query.root !== query.root) throw new TypeError("handler returned the reply to another query");
    // Records that cannot be encoded fail here, while their plugin is known.
    if (!isRcode(outcome.rcode)) throw new TypeError("handler returned a faulty reply");
    try {
      if (outcome.sections.count < 0) throw new RangeError("count of records");
    } catch (error) {
      throw new TypeError(`handler returned records that cannot be written: ${oneLine(error)}`, {
        cause: error,
      });
    }
    return outcome;
  }
  if (outcome instanceof Failure && isRcode(outcome.rcode)) return outcome;
  // The messages of a stream are checked one by one, as they are written.
  if (outcome instanceof ReplyStream && isRcode(outcome.rcode)) return outcome;
  if (typeof outcome === "object" && outcome !== null && "kind" in outcome && outcome.kind === "dropped")
    return { kind: "dropped" };
  throw new TypeError("handler returned no outcome");
}

/** RFC 6891 section 6.1.3: twelve bits. */
function isRcode(value: unknown): boolean {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 0xfff;
}

async function within(
  milliseconds: number,
  clock: Clock,
  hook: BoundedHook,
  run: () => void | Promise<void>,
): Promise<void> {
  const overrun = Promise.withResolvers<void>();
  const timer = clock.after(milliseconds, () =>
    overrun.reject(new Error(`${hook} did not finish within ${formatGoDuration(milliseconds)}`)),
  );
  try {
    await Promise.race([run(), overrun.promise]);
  } finally {
    timer.cancel();
  }
}

function oneLine(error: unknown): string {
  return messageOf(error).replaceAll(/\s*\n\s*/g, " ");
}
