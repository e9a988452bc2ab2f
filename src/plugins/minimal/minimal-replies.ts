import { Rcode } from "../../dns/index.ts";
import { afterwards, type Clock, type Handler, type Outcome, type Query } from "../../plugin/index.ts";
import { responseType } from "../../plugin/query/response-type.ts";

/** Reduces positive answers to the answer section. Denials and delegations need their authority section. */
export class MinimalReplies {
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  readonly #reduce = (outcome: Outcome, query: Query): Outcome => {
    if (outcome.kind !== "reply" || outcome.rcode !== Rcode.NOERROR) return outcome;
    if (responseType(outcome, this.#clock.wallTime()) !== "NOERROR") return outcome;
    outcome.keepAnswerOnly();
    query.trace?.note("keeps only the answer section");
    outcome.edns = undefined;
    return outcome;
  };

  readonly handle: Handler = afterwards(this.#reduce);
}
