import { compilePattern, type Pattern, PatternError } from "../../lib/text/pattern.ts";
import { ValueProblem } from "../../plugin/index.ts";

/** A regular expression, and a template for text that matches: `{N}` stands for group N. */
export class PatternTemplate {
  readonly #pattern: Pattern;
  readonly #template: string;

  constructor(pattern: Pattern, template: string) {
    this.#pattern = pattern;
    this.#template = template;
  }

  /** @returns the new text, `undefined` if the expression does not match */
  rewrite(text: string): string | undefined {
    const match = this.#pattern.match(text);
    if (match === undefined) return undefined;
    return this.#template.replace(
      /\{(\d{1,5})\}/g,
      (whole, group: string) => match.groups[Number(group)] ?? whole,
    );
  }
}

/** Parses an expression and its template. @param about prefix of the messages, may be empty */
export function parseTemplate(
  expression: string,
  template: string,
  about: { readonly prefix?: string; readonly checkGroups?: boolean; readonly problem?: string } = {},
): PatternTemplate | ValueProblem {
  const { prefix = "", checkGroups = true, problem = "invalid regex matching pattern" } = about;
  let pattern: Pattern;
  try {
    pattern = compilePattern(expression);
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    const message = error.message.startsWith("regex pattern too long")
      ? error.message
      : `${problem}: ${expression}`;
    return new ValueProblem(`${prefix}${message}`);
  }
  const used = new Set(Array.from(template.matchAll(/\{(\d{1,5})\}/g), ([, group]) => group));
  if (checkGroups && used.size > pattern.groupCount) {
    return new ValueProblem(
      `${prefix}the rewrite regex pattern (${template}) uses more subexpressions than its corresponding matching regex pattern (${expression})`,
    );
  }
  return new PatternTemplate(pattern, template);
}
