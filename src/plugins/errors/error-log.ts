import { recordTypeName } from "../../dns/index.ts";
import type { Pattern } from "../../lib/text/pattern.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";
import {
  afterwards,
  type Clock,
  type Handler,
  type Logger,
  type Outcome,
  type Query,
  type Timer,
} from "../../plugin/index.ts";

/** How to consolidate errors of one kind. */
export interface ConsolidationRule {
  /** Milliseconds. */
  readonly period: number;
  readonly pattern: Pattern;
  readonly level: "warning" | "error" | "info" | "debug";
  /** Whether to log the first error of each period at once. */
  readonly showFirst: boolean;
}

/** Logs errors of queries that failed further down the chain, and passes the failures on. */
export class ErrorLog {
  readonly #consolidations: readonly Consolidation[];
  readonly #log: Logger;

  constructor(rules: readonly ConsolidationRule[], clock: Clock, log: Logger) {
    this.#consolidations = rules.map((rule) => new Consolidation(rule, clock, log));
    this.#log = log;
  }

  /** Logs the counts of the current periods. */
  stop(): void {
    for (const consolidation of this.#consolidations) consolidation.flush();
  }

  readonly #report = (outcome: Outcome, query: Query): Outcome => {
    if (outcome.kind !== "failed" || outcome.error === undefined) return outcome;
    const reason = outcome.error.message;
    const consolidation = this.#consolidations.find(({ rule }) => rule.pattern.test(reason));
    if (consolidation === undefined) this.#log.error(describe(outcome.rcode, query, reason));
    else if (consolidation.count() && consolidation.rule.showFirst)
      this.#log[consolidation.rule.level](describe(outcome.rcode, query, reason));
    return outcome;
  };

  /** Repeated answers are never errors. */
  readonly handle: Handler = afterwards(this.#report, this.#report, { repeatable: true });
}

/** Counts errors of one kind, and logs their number once per period after the first of them. */
class Consolidation {
  readonly rule: ConsolidationRule;
  readonly #clock: Clock;
  readonly #log: Logger;
  #errors = 0;
  #timer: Timer | undefined;

  constructor(rule: ConsolidationRule, clock: Clock, log: Logger) {
    this.rule = rule;
    this.#clock = clock;
    this.#log = log;
  }

  /** @returns whether this error is the first of its period */
  count(): boolean {
    this.#errors++;
    if (this.#errors > 1) return false;
    this.#timer = this.#clock.after(this.rule.period, () => this.flush());
    return true;
  }

  flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const { period, pattern, level, showFirst } = this.rule;
    const errors = this.#errors;
    this.#errors = 0;
    if (errors === 0 || (errors === 1 && showFirst)) return;
    this.#log[level](
      `${errors} errors like '${pattern.source}' occurred in last ${formatGoDuration(period)}`,
    );
  }
}

function describe(rcode: number, query: Query, reason: string): string {
  return `${rcode} ${query.name.toLowerCase()} ${recordTypeName(query.type)}: ${reason}`;
}
