/** The words of one rule, and how a fault in them is said. */
import type { Span } from "../../corefile/diagnostic.ts";
import type { Token } from "../../corefile/tokens.ts";
import type { ConfigContext } from "../../plugin/config/context.ts";

/** What is wrong with a rule; it is reported where the rule stands. */
export class RuleProblem extends Error {
  override readonly name = "RuleProblem";
  readonly span: Span | undefined;
  readonly expected: string | undefined;

  constructor(
    message: string,
    options: { readonly at?: Token | undefined; readonly expected?: string } = {},
  ) {
    super(message);
    this.span = options.at?.span;
    this.expected = options.expected;
  }
}

export interface RuleWords {
  readonly continues: boolean;
  /** Behind the field: `exact a b` of `name exact a b`. */
  readonly args: readonly Token[];
  /** The whole rule as it is written. */
  readonly text: string;
  readonly context: ConfigContext;
}

/** The text of a word, empty where there is none. */
export function wordAt(args: readonly Token[], index: number): string {
  return args[index]?.text ?? "";
}
