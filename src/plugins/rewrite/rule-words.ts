/** The words of one rule, and errors about them. */
import type { Span } from "../../corefile/diagnostic.ts";
import type { Token } from "../../corefile/tokens.ts";
import type { ConfigContext } from "../../plugin/config/context.ts";

/** An error in a rule; reported at the rule's place. */
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
  /** The words after the field: `exact a b` of `name exact a b`. */
  readonly args: readonly Token[];
  /** The whole rule as written. */
  readonly text: string;
  readonly context: ConfigContext;
}

/** The text of a word, empty for a missing one. */
export function wordAt(args: readonly Token[], index: number): string {
  return args[index]?.text ?? "";
}
