/** `ttl`, `rcode` and `cname` rules: the query passes unchanged, and its reply is changed. */
import type { Name } from "../../dns/index.ts";
import type { Query } from "../../plugin/index.ts";
import type { NameCondition } from "./name-change.ts";
import type { NameText } from "./name-text.ts";
import { type Applied, type CnameTarget, NOT_APPLIED, type ReplyChange, type RewriteRule } from "./rule.ts";

/** Changes replies to queries of certain names. */
export class ReplyRule implements RewriteRule {
  readonly continues: boolean;
  readonly text: string;
  readonly #condition: NameCondition;
  readonly #reply: ReplyChange;

  constructor(continues: boolean, text: string, condition: NameCondition, reply: ReplyChange) {
    this.continues = continues;
    this.text = text;
    this.#condition = condition;
    this.#reply = reply;
  }

  apply(asked: Query, name: NameText): Applied | typeof NOT_APPLIED {
    return this.#condition.matches(asked, name) ? { query: asked, reply: this.#reply } : NOT_APPLIED;
  }
}

/** Checks every reply for aliases. */
export class CnameRule implements RewriteRule {
  readonly continues: boolean;
  readonly text: string;
  readonly #reply: ReplyChange;

  constructor(continues: boolean, text: string, cname: CnameTarget) {
    this.continues = continues;
    this.text = text;
    this.#reply = { cname };
  }

  apply(asked: Query): Applied {
    return { query: asked, reply: this.#reply };
  }
}

/** Clamps TTLs, in seconds. */
export class TtlBounds implements ReplyChange {
  readonly #least: number;
  readonly #most: number;

  constructor(least: number, most: number) {
    this.#least = least;
    this.#most = most;
  }

  ttl(seconds: number): number {
    return Math.min(this.#most, Math.max(this.#least, seconds));
  }
}

export class RcodeChange implements ReplyChange {
  readonly #from: number;
  readonly #to: number;

  constructor(from: number, to: number) {
    this.#from = from;
    this.#to = to;
  }

  rcode(rcode: number): number {
    return rcode === this.#from ? this.#to : rcode;
  }
}

/** A name or text rule applied to the targets of aliases. */
export class ChangedTarget implements CnameTarget {
  readonly #change: (text: string) => Name | undefined;

  /** @param change maps a target in lower case, with its final dot */
  constructor(change: (text: string) => Name | undefined) {
    this.#change = change;
  }

  newTarget(target: Name): Name | undefined {
    return this.#change(target.toLowerCase().toString());
  }
}
