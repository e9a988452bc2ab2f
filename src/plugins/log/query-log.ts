import type { Name } from "../../dns/index.ts";
import { LineFormat } from "../../plugin/facts/line-format.ts";
import {
  afterNext,
  type Clock,
  type Handler,
  type Logger,
  type Outcome,
  type Query,
  type Reply,
} from "../../plugin/index.ts";
import {
  type ResponseClass,
  type ResponseType,
  responseClass,
  responseType,
} from "../../plugin/query/response-type.ts";
import { fieldsOf } from "./fields.ts";
import { JsonFormat } from "./json-format.ts";

export interface LogRule {
  readonly scope: Name;
  /** `{json}` alone for a JSON object. */
  readonly format: string;
  readonly classes: readonly ResponseClass[];
  /** Milliseconds; slower queries are logged whatever their class. */
  readonly slower: number | undefined;
}

/** Logs queries when they are answered. Only the first rule whose scope contains the name applies. */
export class QueryLog {
  readonly #rules: readonly RuleInForce[];

  constructor(rules: readonly LogRule[], clock: Clock, log: Logger) {
    this.#rules = rules.map((rule) => new RuleInForce(rule, clock, log));
  }

  readonly handle: Handler = (query, next) => {
    for (const rule of this.#rules)
      if (rule.covers(query)) return afterNext(next(query), query, rule.afterwards);
    return next(query);
  };
}

class RuleInForce {
  readonly #scope: Name;
  readonly #format: LineFormat | JsonFormat;
  readonly #classes: ReadonlySet<ResponseClass>;
  readonly #logsAll: boolean;
  readonly #slower: number;
  readonly #clock: Clock;
  readonly #log: Logger;

  constructor(rule: LogRule, clock: Clock, log: Logger) {
    this.#scope = rule.scope;
    this.#format = rule.format === JSON_FORMAT ? new JsonFormat(clock) : new LineFormat(rule.format);
    this.#classes = new Set(rule.classes);
    this.#slower = rule.slower ?? Number.POSITIVE_INFINITY;
    this.#logsAll = this.#classes.size === CLASS_COUNT;
    this.#clock = clock;
    this.#log = log;
  }

  covers(query: Query): boolean {
    return this.#scope.isRoot || query.name.isAtOrBelow(this.#scope);
  }

  readonly afterwards = (outcome: Outcome, query: Query): Outcome => {
    if (outcome.kind === "stream")
      // Size and duration are known when the last message has left.
      outcome.whenEnded(() =>
        this.#report(query, replyOf(outcome, query), outcome.plugin, outcome.sentOctets),
      );
    else
      this.#report(query, replyOf(outcome, query), outcome.kind === "dropped" ? undefined : outcome.plugin);
    return outcome;
  };

  #report(query: Query, reply: Reply | undefined, plugin: string | undefined, size?: number): void {
    const isWanted = this.#isWanted(query, reply);
    // The clock is read only if the line is logged or there is a limit on time.
    if (!isWanted && this.#slower === Number.POSITIVE_INFINITY) return;
    const elapsed = this.#clock.now() - query.receivedAt;
    if (!isWanted && elapsed <= this.#slower) return;
    if (this.#format instanceof JsonFormat)
      this.#log.object(this.#format.line(query, reply, elapsed, { plugin, size }));
    else if (this.#log.takesFields)
      this.#log.infoWith(
        this.#format.line(query, reply, elapsed, size),
        fieldsOf(query, reply, elapsed, size),
      );
    else this.#log.info(this.#format.line(query, reply, elapsed, size));
  }

  /** Classifying an answer reads its records, so it is skipped if all classes are logged and no label needs it. */
  #isWanted(query: Query, reply: Reply | undefined): boolean {
    if (query.metadata === undefined) {
      if (this.#logsAll) return true;
      if (this.#classes.size === 0) return false;
    }
    const type: ResponseType =
      reply === undefined ? "OTHERERROR" : responseType(reply, this.#clock.wallTime());
    const answerClass = responseClass(type);
    query.setMetadata("log/type", type);
    query.setMetadata("log/class", answerClass);
    return this.#classes.has(answerClass);
  }
}

const CLASS_COUNT = 3;

/** Used in place of a format. */
export const JSON_FORMAT = "{json}";

/** The reply, or for a failure the reply that the server will make of it. */
function replyOf(outcome: Outcome, query: Query): Reply | undefined {
  if (outcome.kind === "reply") return outcome;
  if (outcome.kind === "dropped") return undefined;
  const reply = query.reply({ rcode: outcome.rcode });
  if (outcome.kind === "stream") reply.flags = outcome.flags;
  return reply;
}
