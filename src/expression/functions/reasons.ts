/** Explains the result of an expression by its parts and their values. */

import { toJson } from "../evaluation/json.ts";
import type { Part } from "../evaluation/part.ts";
import { RUN_BUDGET, Run } from "../evaluation/run.ts";
import { LanguageError } from "../values/language-error.ts";
import { Callable, type ExpressionValue } from "../values/values.ts";

export interface ExplainedPart {
  /** As written. */
  readonly text: string;
  /** In the form of the language, or the error. */
  readonly value: string;
  readonly failed: boolean;
}

/** More parts would not explain anything. */
const MAX_PARTS = 12;
const MAX_VALUE = 80;

/**
 * The evaluated operands of `and`, `or` and `not`, and below them the facts that they read.
 * @param evaluate returns a part's value, or throws LanguageError
 */
export function explainParts<F>(
  text: string,
  root: Part<F>,
  evaluate: (part: Part<F>) => ExpressionValue,
): readonly ExplainedPart[] {
  const found: ExplainedPart[] = [];
  const seen = new Set<string>();
  const add = (part: Part<F>): ExpressionValue | undefined => {
    const written = text.slice(part.node.start, part.node.end);
    let value: ExpressionValue | undefined;
    let shown: string;
    try {
      value = evaluate(part);
      shown = shorten(value);
    } catch (error) {
      if (!(error instanceof LanguageError)) throw error;
      shown = error.message;
    }
    if (!seen.has(written) && found.length < MAX_PARTS)
      found.push({ text: written, value: shown, failed: value === undefined });
    seen.add(written);
    return value;
  };
  const visit = (part: Part<F>): ExpressionValue | undefined => {
    const { node, children } = part;
    const [first, second] = children;
    if (node.kind === "binary" && (node.operator === "and" || node.operator === "or") && first && second) {
      const left = visit(first);
      const decided = left === (node.operator === "or") || left === undefined;
      return decided ? left : visit(second);
    }
    if (node.kind === "unary" && node.operator === "not" && first) {
      const value = visit(first);
      return typeof value === "boolean" ? !value : undefined;
    }
    const value = add(part);
    for (const child of children) ask(child);
    return value;
  };
  /** Calls without a pointer can be evaluated on their own. */
  const ask = (part: Part<F>): void => {
    if (part.constant !== undefined || part.node.kind === "predicate") return;
    if (part.node.kind === "call" || part.node.kind === "name") {
      if (!usesSlots(part)) add(part);
      return;
    }
    for (const child of part.children) ask(child);
  };
  visit(root);
  return found;
}

function usesSlots<F>(part: Part<F>): boolean {
  return part.isLocal === true || part.children.some(usesSlots);
}

function shorten(value: ExpressionValue): string {
  if (value instanceof Callable) return "a function";
  const run = new Run(undefined, 0);
  run.start(undefined, RUN_BUDGET);
  let text: string;
  try {
    text = toJson(value, run).replaceAll(/\s*\n\s*/g, " ");
  } catch {
    return "a large value";
  }
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}...` : text;
}
