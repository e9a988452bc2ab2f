import { afterNext, type Handler, type Outcome, type Query } from "../../plugin/index.ts";

export interface FlagRule {
  readonly action: "set" | "clear";
  /** Bits of the second header word. */
  readonly flags: readonly number[];
}

/** Several rules combined into one change. */
export class FlagChange {
  readonly #set: number;
  readonly #kept: number;

  constructor(rules: readonly FlagRule[]) {
    let set = 0;
    let cleared = 0;
    for (const { action, flags } of rules) {
      for (const bit of flags) {
        set = action === "set" ? set | bit : set & ~bit;
        cleared = action === "set" ? cleared & ~bit : cleared | bit;
      }
    }
    this.#set = set;
    this.#kept = ~cleared;
  }

  get isEmpty(): boolean {
    return this.#set === 0 && this.#kept === ~0;
  }

  apply(flags: number): number {
    return (flags & this.#kept) | this.#set;
  }
}

/** Changes the flags of queries for later plugins, and the flags of their replies. */
export function changeHeader(ofQueries: FlagChange, ofReplies: FlagChange): Handler {
  function afterwards(outcome: Outcome, query: Query): Outcome {
    if (outcome.kind !== "reply") return outcome;
    const flags = ofReplies.apply(outcome.flags);
    if (flags !== outcome.flags) query.trace?.note("changed the flags of the reply");
    outcome.flags = flags;
    return outcome;
  }

  return (query, next) => {
    const flags = ofQueries.apply(query.flags);
    if (flags !== query.flags) query.trace?.note("changed the flags of the query");
    const outcome = next(flags === query.flags ? query : query.derive({ flags }));
    return ofReplies.isEmpty ? outcome : afterNext(outcome, query, afterwards);
  };
}
