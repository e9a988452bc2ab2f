import type { Name } from "../../dns/index.ts";
import {
  afterNext,
  type Clock,
  type Handler,
  type Logger,
  type Outcome,
  type Query,
  type Reply,
  type ResponseClass,
  type ResponseType,
  responseClass,
  responseType,
} from "../../plugin/index.ts";
import { LineFormat } from "../../plugin/line-format.ts";

export interface LogRule {
  readonly scope: Name;
  readonly format: string;
  readonly classes: readonly ResponseClass[];
}

/** Logs queries once they are answered. The first rule whose scope holds the name decides alone. */
export class QueryLog {
  readonly #rules: readonly RuleInForce[];

  constructor(rules: readonly LogRule[], clock: Clock, log: Logger) {
    this.#rules = rules.map((rule) => new RuleInForce(rule, clock, log));
  }

  readonly handle: Handler = (query, next) => {
    if (query.trace?.leavesNoMark === true) return next(query);
    for (const rule of this.#rules)
      if (rule.covers(query)) return afterNext(next(query), query, rule.afterwards);
    return next(query);
  };
}

class RuleInForce {
  readonly #scope: Name;
  readonly #format: LineFormat;
  readonly #classes: ReadonlySet<ResponseClass>;
  readonly #logsAll: boolean;
  readonly #clock: Clock;
  readonly #log: Logger;

  constructor(rule: LogRule, clock: Clock, log: Logger) {
    this.#scope = rule.scope;
    this.#format = new LineFormat(rule.format);
    this.#classes = new Set(rule.classes);
    this.#logsAll = this.#classes.size === CLASS_COUNT;
    this.#clock = clock;
    this.#log = log;
  }

  covers(query: Query): boolean {
    return this.#scope.isRoot || query.name.isAtOrBelow(this.#scope);
  }

  readonly afterwards = (outcome: Outcome, query: Query): Outcome => {
    const reply = replyOf(outcome, query);
    if (this.#isWanted(query, reply)) {
      const elapsed = this.#clock.now() - query.receivedAt;
      this.#log.info(this.#format.line(query, reply, elapsed));
    }
    return outcome;
  };

  /** What kind of answer it is costs a look at the records: nobody asks where all are logged and no label is wanted. */
  #isWanted(query: Query, reply: Reply | undefined): boolean {
    if (this.#logsAll && query.metadata === undefined) return true;
    const type: ResponseType =
      reply === undefined ? "OTHERERROR" : responseType(reply, this.#clock.wallTime());
    const answerClass = responseClass(type);
    query.setMetadata("log/type", type);
    query.setMetadata("log/class", answerClass);
    return this.#classes.has(answerClass);
  }
}

const CLASS_COUNT = 3;

/** The reply, or for a failure the one that the server is going to make of it. */
function replyOf(outcome: Outcome, query: Query): Reply | undefined {
  if (outcome.kind === "reply") return outcome;
  // Of many messages the first counts: how many come, nobody knows yet.
  return outcome.kind === "dropped" ? undefined : query.reply({ rcode: outcome.rcode });
}
