/** `class` and `type` rules change the rest of the question. The records of the reply stay unchanged. */
import { className, recordTypeName } from "../../dns/index.ts";
import type { Query } from "../../plugin/index.ts";
import { type Applied, NOT_APPLIED, type RewriteRule } from "./rule.ts";

export class TypeRule implements RewriteRule {
  readonly continues: boolean;
  readonly text: string;
  readonly #from: number;
  readonly #to: number;

  constructor(continues: boolean, text: string, from: number, to: number) {
    this.continues = continues;
    this.text = text;
    this.#from = from;
    this.#to = to;
  }

  apply(asked: Query): Applied | typeof NOT_APPLIED {
    if (asked.type !== this.#from) return NOT_APPLIED;
    const query = asked.derive({ type: this.#to });
    return { query, note: `type ${recordTypeName(this.#from)} -> ${recordTypeName(this.#to)}` };
  }
}

export class ClassRule implements RewriteRule {
  readonly continues: boolean;
  readonly text: string;
  readonly #from: number;
  readonly #to: number;

  constructor(continues: boolean, text: string, from: number, to: number) {
    this.continues = continues;
    this.text = text;
    this.#from = from;
    this.#to = to;
  }

  apply(asked: Query): Applied | typeof NOT_APPLIED {
    if (asked.class !== this.#from) return NOT_APPLIED;
    const query = asked.derive({ class: this.#to });
    return { query, note: `class ${className(this.#from)} -> ${className(this.#to)}` };
  }
}
