import type { Token } from "../corefile/tokens.ts";
import type { Directive } from "../corefile/tree.ts";
import { optionLines } from "../plugin/contract/zone-claims.ts";
import type { LintRule } from "./rule.ts";

/**
 * Finds conditions about a label that the server block never sets: the label is always empty, so the wrong block may take the
 * query.
 */
export const metadataMissing: LintRule = {
  code: "LINT_METADATA_MISSING",
  about: "an expression of a view or a template uses a label that its server block never sets",

  check({ blocks }, report) {
    for (const { directives } of blocks) {
      for (const { args } of directives.filter(hasExpressions).flatMap((each) => optionLines(each, "expr"))) {
        for (const { label, token } of labelsOf(args)) {
          const missing = missingFor(label, directives);
          if (missing === undefined) continue;
          const message = `'${label}' is always empty: ${missing.reason}`;
          report.warning(metadataMissing.code, token.span, message, { expected: missing.expected });
        }
      }
    }
  },
};

function hasExpressions({ name }: Directive): boolean {
  return name.text === "view" || name.text === "template";
}

function* labelsOf(args: readonly Token[]): Generator<{ label: string; token: Token }> {
  const text = args.map((token) => token.text).join(" ");
  for (const { 1: label = "", index } of text.matchAll(/\bmetadata\(\s*'([^'\\]+)'\s*\)/g)) {
    const token = tokenAt(args, index);
    if (token !== undefined) yield { label, token };
  }
}

/** The words are joined by one space each. */
function tokenAt(args: readonly Token[], offset: number): Token | undefined {
  let end = 0;
  return args.find(({ text }) => {
    end += text.length + 1;
    return offset < end;
  });
}

interface Missing {
  readonly reason: string;
  readonly expected: string;
}

function missingFor(label: string, directives: readonly Directive[]): Missing | undefined {
  if (directives.every(({ name }) => name.text !== "metadata"))
    return {
      reason: "this server block has no 'metadata'",
      expected: "the line 'metadata' in the same server block",
    };
  if (!label.startsWith("kubernetes/")) return undefined;
  const clusters = directives.filter(({ name }) => name.text === "kubernetes");
  if (clusters.length === 0)
    return {
      reason: "this server block has no 'kubernetes'",
      expected: "a 'kubernetes' in the same server block",
    };
  if (!label.startsWith("kubernetes/client-") || clusters.some(knowsPods)) return undefined;
  return {
    reason: "without 'pods verified', 'kubernetes' does not know which pod sends a query",
    expected: "the line 'pods verified' in the block of 'kubernetes'",
  };
}

export function knowsPods(directive: Directive): boolean {
  return optionLines(directive, "pods").at(-1)?.args[0]?.text === "verified";
}
