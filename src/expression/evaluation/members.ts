/** Members of maps and arrays, and slices of arrays and texts. */

import type { MemberNode, Node } from "../syntax/syntax.ts";
import { RunFault } from "../values/language-error.ts";
import { octetLength, sliceOctets } from "../values/octet-text.ts";
import { elementOf, type Type, typeText, UNKNOWN } from "../values/types.ts";
import { Callable, type ExpressionValue, isList, isMap, kindOf } from "../values/values.ts";
import { wholeNumber } from "./operators.ts";
import type { Part } from "./part.ts";
import type { PartCompiler } from "./part-compiler.ts";
import type { Run } from "./run.ts";

type Of<K extends Node["kind"]> = Extract<Node, { readonly kind: K }>;

/** The value of a chain with `?.` after nil: the rest is skipped. */
const LEFT_OUT: ExpressionValue = new Callable("left out", () => null);

/** @throws LanguageError */
export function compileMember<F>(compiler: PartCompiler<F>, node: MemberNode): Part<F> {
  if (node.object.kind === "name" && node.object.name === "$env") {
    const special = environmentMember(compiler, node);
    if (special !== undefined) return special;
  }
  const object = compiler.compile(node.object);
  const property = compiler.compile(node.property);
  const type = checkMember(compiler, node, object.type, property);
  const { isOptional } = node;
  return compiler.folded(node, type, [object, property], (run) => {
    const value = object.run(run);
    if (value === LEFT_OUT) return value;
    if (value === null && isOptional) return LEFT_OUT;
    return memberOf(value, property.run(run));
  });
}

/** `$env.name` is the name itself. */
function environmentMember<F>(compiler: PartCompiler<F>, node: MemberNode): Part<F> | undefined {
  const { property } = node;
  if (property.kind !== "literal" || typeof property.value !== "string") return undefined;
  const { functions, variables } = compiler.environment;
  const isThere = functions.has(property.value) || variables?.has(property.value) === true;
  if (isThere) return compiler.outerName(node, property.value);
  return node.isOptional ? undefined : compiler.unknownName(property.value, property);
}

function checkMember<F>(compiler: PartCompiler<F>, node: MemberNode, object: Type, property: Part<F>): Type {
  const { kind } = property.type;
  switch (object.kind) {
    case "unknown":
      return UNKNOWN;
    case "map":
      if (kind !== "string" && kind !== "unknown")
        compiler.fail(`cannot use ${typeText(property.type)} to get an element from map`, node.property);
      return UNKNOWN;
    case "array":
      if (kind !== "int" && kind !== "unknown")
        compiler.fail(
          `array elements can only be selected using an integer (got ${typeText(property.type)})`,
          node.property,
        );
      return elementOf(object);
    default: {
      const field = typeof property.constant === "string" ? ` has no field ${property.constant}` : undefined;
      return compiler.fail(`type ${typeText(object)}${field ?? " has no elements"}`, node.property);
    }
  }
}

/** @throws RunFault */
function memberOf(object: ExpressionValue, key: ExpressionValue): ExpressionValue {
  if (object !== null && isMap(object)) {
    if (typeof key !== "string") throw new RunFault(`a key of a map is a string, not ${kindOf(key)}`);
    return object.get(key) ?? null;
  }
  if (object !== null && isList(object)) {
    const at = wholeNumber(key);
    const item = typeof at === "number" ? object.at(at) : undefined;
    if (item === undefined)
      throw new RunFault(`index out of range: ${at} (array length is ${object.length})`);
    return item;
  }
  throw new RunFault(`cannot fetch ${typeof key === "string" ? key : kindOf(key)} from ${kindOf(object)}`);
}

/** @throws LanguageError */
export function compileChain<F>(compiler: PartCompiler<F>, node: Of<"chain">): Part<F> {
  const body = compiler.compile(node.body);
  if (body.constant !== undefined && body.constant !== LEFT_OUT) return body;
  const type = body.type.kind === "unknown" ? UNKNOWN : body.type;
  return compiler.folded(node, type, [body], (run) => {
    const value = body.run(run);
    return value === LEFT_OUT ? null : value;
  });
}

/** @throws LanguageError */
export function compileSlice<F>(compiler: PartCompiler<F>, node: Of<"slice">): Part<F> {
  const object = compiler.compile(node.object);
  const from = node.from === undefined ? undefined : compiler.compile(node.from);
  const to = node.to === undefined ? undefined : compiler.compile(node.to);
  if (!["unknown", "array", "string", "bytes"].includes(object.type.kind))
    compiler.fail(`cannot slice ${typeText(object.type)}`, node.object);
  for (const bound of [from, to]) {
    if (bound === undefined || bound.type.kind === "int" || bound.type.kind === "unknown") continue;
    compiler.fail(`non-integer slice index ${typeText(bound.type)}`, bound.node);
  }
  const children = [object, from, to].filter((part) => part !== undefined);
  return compiler.folded(node, object.type, children, (run) => {
    const value = object.run(run);
    if (value === LEFT_OUT) return value;
    const length = lengthOf(value);
    const end = boundOf(to, length, length, run);
    const start = Math.min(boundOf(from, 0, length, run), end);
    if (typeof value === "string") return sliceOctets(value, start, end);
    if (value instanceof Uint8Array) return value.slice(start, end);
    run.spend(end - start);
    return isList(value) ? value.slice(start, end) : null;
  });
}

function lengthOf(value: ExpressionValue): number {
  if (typeof value === "string") return octetLength(value);
  if (value instanceof Uint8Array || (value !== null && isList(value))) return value.length;
  throw new RunFault(`cannot slice ${kindOf(value)}`);
}

/** Negative bounds count from the end; bounds outside of the range are clamped. */
function boundOf<F>(part: Part<F> | undefined, fallback: number, length: number, run: Run<F>): number {
  if (part === undefined) return fallback;
  const at = Number(wholeNumber(part.run(run)));
  return Math.min(Math.max(at < 0 ? at + length : at, 0), length);
}
