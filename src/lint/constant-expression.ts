import type { Directive } from "../corefile/tree.ts";
import { compileExpression } from "../expression/expression.ts";
import { LanguageError } from "../expression/values/language-error.ts";
import { STRING, UNKNOWN } from "../expression/values/types.ts";
import type { ExpressionValue } from "../expression/values/values.ts";
import { optionLines } from "../plugin/contract/zone-claims.ts";
import { queryFunctions } from "../plugin/facts/query-environment.ts";
import type { Query } from "../plugin/query/query.ts";
import type { LintRule } from "./rule.ts";

/** Finds conditions of `view` or `template` that are the same for every query. */
export const constantExpression: LintRule = {
  code: "LINT_EXPRESSION_CONSTANT",
  about: "an expression of a view or a template is true for every query, or false for every query",

  check({ blocks }, report) {
    for (const { directives } of blocks) {
      for (const directive of directives.filter(
        ({ name }) => name.text === "view" || name.text === "template",
      )) {
        for (const { name, args } of optionLines(directive, "expr")) {
          const value = constantOf(args.map((token) => token.text).join(" "));
          if (value === undefined) continue;
          report.warning(
            constantExpression.code,
            args[0]?.span ?? name.span,
            value === true
              ? "this expression is true for every query, so it has no effect"
              : `this expression is never true: ${consequence(directive)}`,
            { expected: "a condition about the query, such as incidr(client_ip(), '10.0.0.0/8')" },
          );
        }
      }
    }
  },
};

function consequence({ name }: Directive): string {
  return name.text === "view" ? "its server block takes no query" : "the template answers nothing";
}

const FUNCTIONS = new Map([
  ...queryFunctions((query: Query) => query),
  ["group", { parameters: [UNKNOWN], result: STRING, call: () => "" }],
] as const);

/** The value of an expression that does not depend on the query; `undefined` for any other, and for an invalid one. */
export function constantOf(text: string): ExpressionValue | undefined {
  try {
    const expression = compileExpression(text, { functions: FUNCTIONS });
    // Values that are not Boolean count as false.
    if (expression.constant === undefined && ["unknown", "bool"].includes(expression.type.kind))
      return undefined;
    return expression.constant ?? null;
  } catch (error) {
    if (error instanceof LanguageError) return undefined;
    throw error;
  }
}
