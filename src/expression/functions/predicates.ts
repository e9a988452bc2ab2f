/** Functions that evaluate a predicate for each element of an array. */

import { truth } from "../evaluation/operators.ts";
import type { Part } from "../evaluation/part.ts";
import type { PartCompiler } from "../evaluation/part-compiler.ts";
import type { Evaluate, Run } from "../evaluation/run.ts";
import type { CallNode } from "../syntax/syntax.ts";
import { RunFault } from "../values/language-error.ts";
import { ARRAY, arrayOf, BOOL, elementOf, INT, MAP, type Type, typeText, UNKNOWN } from "../values/types.ts";
import { type ExpressionValue, isList, kindOf, valueText } from "../values/values.ts";
import { sorted } from "./functions-lists.ts";
import { addNumbers } from "./functions-numbers.ts";

/** Calls the predicate for one element. */
type Apply = (item: ExpressionValue, index: number) => ExpressionValue;

interface PredicateFunction {
  /** Whether the predicate must return a Boolean. */
  readonly asks: boolean;
  /** Whether it is optional: `count(list)`. */
  readonly isOptional?: boolean;
  /** Number of further arguments. */
  readonly further?: number;
  result(element: Type, predicate: Type): Type;
  call(
    items: readonly ExpressionValue[],
    apply: Apply,
    run: Run<unknown>,
    third: ExpressionValue | undefined,
  ): ExpressionValue;
}

const listOf = (element: Type): Type => (element.kind === "unknown" ? ARRAY : arrayOf(element));

function findIndex(items: readonly ExpressionValue[], apply: Apply): number {
  return items.findIndex((item, at) => truth(apply(item, at)));
}

function findLastIndex(items: readonly ExpressionValue[], apply: Apply): number {
  return items.findLastIndex((item, at) => truth(apply(item, at)));
}

function countOf(items: readonly ExpressionValue[], apply: Apply): number {
  return items.reduce<number>((count, item, at) => (truth(apply(item, at)) ? count + 1 : count), 0);
}

const orNil = (index: number): ExpressionValue => (index < 0 ? null : index);

const PREDICATES: Readonly<Record<string, PredicateFunction>> = {
  all: {
    asks: true,
    result: () => BOOL,
    call: (items, apply) => items.every((item, at) => truth(apply(item, at))),
  },
  any: {
    asks: true,
    result: () => BOOL,
    call: (items, apply) => items.some((item, at) => truth(apply(item, at))),
  },
  none: {
    asks: true,
    result: () => BOOL,
    call: (items, apply) => !items.some((item, at) => truth(apply(item, at))),
  },
  one: { asks: true, result: () => BOOL, call: (items, apply) => countOf(items, apply) === 1 },
  filter: {
    asks: true,
    result: listOf,
    call: (items, apply) => items.filter((item, at) => truth(apply(item, at))),
  },
  map: {
    asks: false,
    result: (_element, predicate) => listOf(predicate),
    call: (items, apply) => items.map((item, at) => apply(item, at)),
  },
  count: { asks: true, isOptional: true, result: () => INT, call: countOf },
  sum: {
    asks: false,
    isOptional: true,
    result: (_element, predicate) => predicate,
    call(items, apply, run) {
      let sum: ExpressionValue = 0;
      for (const [at, item] of items.entries()) {
        const value = apply(item, at);
        if (typeof value === "string") throw new RunFault("invalid operation: int + string");
        sum = addNumbers(sum, value, run);
      }
      return sum;
    },
  },
  find: {
    asks: true,
    result: (element) => element,
    call: (items, apply) => items[findIndex(items, apply)] ?? null,
  },
  findIndex: { asks: true, result: () => INT, call: (items, apply) => orNil(findIndex(items, apply)) },
  findLast: {
    asks: true,
    result: (element) => element,
    call: (items, apply) => items[findLastIndex(items, apply)] ?? null,
  },
  findLastIndex: {
    asks: true,
    result: () => INT,
    call: (items, apply) => orNil(findLastIndex(items, apply)),
  },
  groupBy: {
    asks: false,
    result: () => MAP,
    call(items, apply, run) {
      const groups = new Map<string, ExpressionValue[]>();
      for (const [at, item] of items.entries()) {
        const key = valueText(apply(item, at), run);
        const group = groups.get(key);
        if (group === undefined) groups.set(key, [item]);
        else group.push(item);
      }
      return groups;
    },
  },
  sortBy: {
    asks: false,
    further: 1,
    result: listOf,
    call: (items, apply, run, order) =>
      sorted(
        items,
        items.map((item, at) => apply(item, at)),
        order,
        run,
      ),
  },
};

/** @throws LanguageError */
export function compilePredicateCall<F>(compiler: PartCompiler<F>, node: CallNode): Part<F> {
  const { name, args } = node;
  const [listNode, predicateNode, thirdNode] = args;
  if (name === "reduce") return reduce(compiler, node);
  const rules = PREDICATES[name];
  if (rules === undefined) return compiler.unknownName(name, node.nameExtent);
  const isShort = listNode === undefined || (predicateNode === undefined && rules.isOptional !== true);
  if (isShort) return compiler.fail(`not enough arguments to call ${name}`, node);
  if (args.length > 2 + (rules.further ?? 0))
    return compiler.fail(`too many arguments to call ${name}`, node);
  const list = compileList(compiler, node, name);
  const element = elementOf(list.type);
  const elementSlot = compiler.scope.takeSlot();
  const indexSlot = compiler.scope.takeSlot();
  const frame = { element, elementSlot, indexSlot, accumulatorSlot: undefined };
  const body =
    predicateNode?.kind === "predicate"
      ? compiler.scope.withFrame(frame, () => compiler.compile(predicateNode.body))
      : undefined;
  const type = body?.type ?? element;
  if (rules.asks && type.kind !== "bool" && type.kind !== "unknown")
    return compiler.fail(`predicate should return boolean (got ${typeText(type)})`, predicateNode ?? node);
  const third = thirdNode === undefined ? undefined : compiler.compile(thirdNode);
  const children = [list, ...(body === undefined ? [] : [body]), ...(third === undefined ? [] : [third])];
  const run = (state: Run<F>): ExpressionValue => {
    const items = itemsOf(list.run(state), name);
    const apply = applying(state, body?.run, elementSlot, indexSlot);
    return rules.call(items, apply, state, third?.run(state));
  };
  return compiler.live(node, rules.result(element, type), children, run);
}

function compileList<F>(compiler: PartCompiler<F>, node: CallNode, name: string): Part<F> {
  const [listNode] = node.args;
  if (listNode === undefined) return compiler.fail(`not enough arguments to call ${name}`, node);
  const list = compiler.compile(listNode);
  if (list.type.kind !== "array" && list.type.kind !== "unknown")
    return compiler.fail(`builtin ${name} takes only array (got ${typeText(list.type)})`, listNode);
  return list;
}

function itemsOf(value: ExpressionValue, name: string): readonly ExpressionValue[] {
  if (value !== null && isList(value)) return value;
  throw new RunFault(`builtin ${name} takes only array (got ${kindOf(value)})`);
}

function applying<F>(
  run: Run<F>,
  body: Evaluate<F> | undefined,
  elementSlot: number,
  indexSlot: number,
): Apply {
  return (item, index) => {
    run.spend(1);
    if (body === undefined) return item;
    run.slots[elementSlot] = item;
    run.slots[indexSlot] = index;
    return body(run);
  };
}

/** `reduce(list, predicate, start)`: without a start, it is the first element. */
function reduce<F>(compiler: PartCompiler<F>, node: CallNode): Part<F> {
  const [, predicateNode, startNode] = node.args;
  if (predicateNode?.kind !== "predicate") return compiler.fail("not enough arguments to call reduce", node);
  if (node.args.length > 3) return compiler.fail("too many arguments to call reduce", node);
  const list = compileList(compiler, node, "reduce");
  const [elementSlot, indexSlot, accumulatorSlot] = [0, 0, 0].map(() => compiler.scope.takeSlot());
  if (elementSlot === undefined || indexSlot === undefined || accumulatorSlot === undefined) return list;
  const frame = { element: elementOf(list.type), elementSlot, indexSlot, accumulatorSlot };
  const body = compiler.scope.withFrame(frame, () => compiler.compile(predicateNode.body));
  const start = startNode === undefined ? undefined : compiler.compile(startNode);
  const children = [list, body, ...(start === undefined ? [] : [start])];
  return compiler.live(node, UNKNOWN, children, (run) => {
    const items = itemsOf(list.run(run), "reduce");
    const apply = applying(run, body.run, elementSlot, indexSlot);
    const [first] = items;
    if (start === undefined && first === undefined)
      throw new RunFault("reduce of empty array with no initial value");
    let accumulator = start === undefined ? (first ?? null) : start.run(run);
    for (let at = start === undefined ? 1 : 0; at < items.length; at++) {
      run.slots[accumulatorSlot] = accumulator;
      accumulator = apply(items[at] ?? null, at);
    }
    return accumulator;
  });
}
