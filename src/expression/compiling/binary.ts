/** Binary operators, with cheaper forms of some. */

import { BINARY_OPERATORS, matchesPattern, patternOf, truth, wholeNumber } from "../evaluation/operators.ts";
import { accepted, constantPart, type Part } from "../evaluation/part.ts";
import type { PartCompiler } from "../evaluation/part-compiler.ts";
import type { Node } from "../syntax/syntax.ts";
import { RunFault } from "../values/language-error.ts";
import { BOOL, commonType } from "../values/types.ts";
import { type ExpressionValue, isList, kindOf, toNumber } from "../values/values.ts";

type BinaryNode = Extract<Node, { readonly kind: "binary" }>;

/** @throws LanguageError */
export function compileBinary<F>(compiler: PartCompiler<F>, node: BinaryNode): Part<F> {
  const { operator } = node;
  const left = compiler.compile(node.left);
  const right = compiler.compile(node.right);
  if (operator === "??") return coalesce(compiler, node, left, right);
  const rules = BINARY_OPERATORS.get(operator);
  if (rules === undefined) return compiler.fail(`unknown operator ${operator}`, node);
  const type = accepted(rules.check(left.type, right.type), node);
  const both = [left, right];
  if (operator === "and" || operator === "or") return logic(compiler, node, left, right);
  if (operator === "in") {
    const special = membership(compiler, node, left, right);
    if (special !== undefined) return special;
  }
  if (operator === "matches" && node.right.kind !== "call" && typeof right.constant === "string") {
    const pattern = accepted(patternOf(right.constant), node.right);
    return compiler.folded(node, type, both, (run) => matchesPattern(left.run(run), pattern, run));
  }
  if (operator === "%" && right.constant === 0 && left.constant !== undefined)
    return compiler.fail("integer divide by zero", node);
  return compiler.folded(node, type, both, (run) => rules.run(left.run(run), right.run(run), run));
}

function coalesce<F>(compiler: PartCompiler<F>, node: Node, left: Part<F>, right: Part<F>): Part<F> {
  if (left.constant !== undefined) return left.constant === null ? right : left;
  const type = left.type.kind === right.type.kind ? left.type : commonType(left.type, right.type);
  return compiler.live(node, type, [left, right], (run) => left.run(run) ?? right.run(run));
}

/** `and`, `or`: the right side is skipped if the left one decides. A constant side is dropped if it does not decide. */
function logic<F>(compiler: PartCompiler<F>, node: BinaryNode, left: Part<F>, right: Part<F>): Part<F> {
  const decides = node.operator === "or";
  const sides = [
    [left, right],
    [right, left],
  ] as const;
  for (const [side, other] of sides) {
    if (side.constant === decides) return constantPart(node, decides, BOOL);
    if (side.constant === !decides) return { ...other, type: BOOL };
  }
  return compiler.live(node, BOOL, [left, right], (run) => {
    return truth(left.run(run)) === decides ? decides : right.run(run);
  });
}

/** `in` a range, without making its elements, and `in` a list of texts, as a set. */
function membership<F>(
  compiler: PartCompiler<F>,
  node: BinaryNode,
  left: Part<F>,
  right: Part<F>,
): Part<F> | undefined {
  const range = node.right;
  if (range.kind === "binary" && range.operator === "..") {
    const [from, to] = [compiler.compile(range.left), compiler.compile(range.right)];
    return compiler.folded(node, BOOL, [left, from, to], (run) => {
      const value = toNumber(left.run(run));
      const [least, most] = [wholeNumber(from.run(run)), wholeNumber(to.run(run))];
      return value !== undefined && Number.isInteger(value) && value >= least && value <= most;
    });
  }
  const { constant } = right;
  if (constant === undefined || constant === null || !isList(constant) || constant.length === 0)
    return undefined;
  if (!constant.every((item) => typeof item === "string")) return undefined;
  const texts = new Set<ExpressionValue>(constant);
  return compiler.folded(node, BOOL, [left, right], (run) => {
    const value = left.run(run);
    if (typeof value === "string") return texts.has(value);
    if (value === null) return false;
    throw new RunFault(`a string is needed in front of 'in', not ${kindOf(value)}`);
  });
}
