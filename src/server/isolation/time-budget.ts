/** The time limit of external plugins: a query that exceeds it gets SERVFAIL. */
import { Rcode } from "../../dns/numbers.ts";
import type { CounterSlot } from "../../lib/metrics/metric-slots.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";
import type { Handler, Next } from "../../plugin/chain/handler.ts";
import type { Site } from "../../plugin/contract/site.ts";
import { Failure, type Outcome } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";

/** Milliseconds that a plugin may spend on a query by default: most clients have given up after that. */
export const DEFAULT_TIME_BUDGET = 5_000;

/** A plugin exceeded its time for a query. */
export class PluginOverrun extends Error {
  override readonly name = "PluginOverrun";
  readonly plugin: string;

  constructor(plugin: string, budget: number) {
    super(`plugin ${plugin} gave no answer within ${formatGoDuration(budget)}`);
    this.plugin = plugin;
  }
}

/** Milliseconds between two lines of one plugin in the log. */
const LOG_INTERVAL = 1_000;

/** The time limit of one plugin, with its counter and its log line. */
export class TimeBudget {
  /** 0 for no bound. */
  readonly milliseconds: number;
  readonly site: Site;
  readonly #overruns: CounterSlot;
  #lastLine = Number.NEGATIVE_INFINITY;
  #unlogged = 0;

  constructor(milliseconds: number, site: Site) {
    this.milliseconds = milliseconds;
    this.site = site;
    this.#overruns = site.metrics
      .counter({
        name: "portolan_plugin_overruns_total",
        help: "Queries that a plugin did not finish in time.",
        labels: ["plugin"],
      })
      .slot(site.plugin);
  }

  overrun(query: Query): Failure {
    this.#overruns.increment();
    const error = new PluginOverrun(this.site.plugin, this.milliseconds);
    this.#unlogged++;
    if (this.site.clock.now() - this.#lastLine >= LOG_INTERVAL) {
      const others = this.#unlogged > 1 ? ` and for ${this.#unlogged - 1} queries before it` : "";
      this.site.log.error(
        `no answer within ${formatGoDuration(this.milliseconds)} for ${query.name}${others}: SERVFAIL`,
      );
      this.#lastLine = this.site.clock.now();
      this.#unlogged = 0;
    }
    return new Failure(Rcode.SERVFAIL, error);
  }
}

/** Times one query. The clock stands still while the rest of the chain works. */
export class QueryGuard {
  readonly #budget: TimeBudget;
  readonly #behind: Next;
  /** Promises of the rest of the chain that have not settled. */
  #waiting = 0;
  #lastBehind: Promise<Outcome> | undefined;
  #cancel: (() => void) | undefined;
  /** Set once the handler waits for something. */
  #rearm: (() => void) | undefined;

  constructor(budget: TimeBudget, behind: Next) {
    this.#budget = budget;
    this.#behind = behind;
  }

  run(handle: Handler, query: Query): Outcome | Promise<Outcome> {
    const outcome = handle(query, this.#next);
    // A promise of the rest of the chain is not this plugin's responsibility.
    if (!(outcome instanceof Promise) || this.passedOn(outcome) || this.#budget.milliseconds === 0)
      return outcome;
    return new Promise((resolve, reject) => {
      this.#rearm = () => {
        const timer = this.#budget.site.clock.after(this.#budget.milliseconds, () => {
          this.#rearm = undefined;
          resolve(this.#budget.overrun(query));
        });
        this.#cancel = () => timer.cancel();
      };
      if (this.#waiting === 0) this.#rearm();
      const stop = (): void => {
        this.#rearm = undefined;
        this.#cancel?.();
      };
      outcome.then(
        (settled) => {
          stop();
          resolve(settled);
        },
        (error: unknown) => {
          stop();
          reject(error instanceof Error ? error : new Error(String(error)));
        },
      );
    });
  }

  /** Whether this is the promise that the rest of the chain returned last. */
  passedOn(outcome: Promise<Outcome>): boolean {
    return outcome === this.#lastBehind;
  }

  readonly #next: Next = (query) => {
    const outcome = this.#behind(query);
    if (!(outcome instanceof Promise)) return outcome;
    this.#waiting++;
    this.#cancel?.();
    const settle = (): void => {
      this.#waiting--;
      if (this.#waiting === 0) this.#rearm?.();
    };
    outcome.then(settle, settle);
    this.#lastBehind = outcome;
    return outcome;
  };
}
