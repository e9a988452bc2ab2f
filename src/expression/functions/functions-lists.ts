/** Functions on arrays and maps. */

import { orderOf } from "../evaluation/operators.ts";
import { Misuse, RunFault } from "../values/language-error.ts";
import { codePointCount } from "../values/octet-text.ts";
import {
  ARRAY,
  arrayOf,
  elementOf,
  INT,
  MAP,
  STRING,
  type Type,
  typeText,
  UNKNOWN,
} from "../values/types.ts";
import {
  type ExpressionValue,
  equalValues,
  Float,
  isList,
  isMap,
  kindOf,
  valueText,
} from "../values/values.ts";
import {
  type AnyRun,
  type BuiltinFunction,
  countArgument,
  listArgument,
  oneOf,
  plainFunction,
} from "./function-kit.ts";

const isArrayType = ({ kind }: Type): boolean => kind === "array";
const isMapType = ({ kind }: Type): boolean => kind === "map";

const len = oneOf(
  ({ kind }) => ["string", "bytes", "array", "map"].includes(kind),
  (type) => `invalid argument for len (type ${type})`,
  () => INT,
  (value, run) => {
    if (typeof value === "string") {
      run.spendText(value.length);
      return codePointCount(value);
    }
    if (value instanceof Uint8Array) return value.length;
    if (value !== null && isList(value)) return value.length;
    if (value !== null && isMap(value)) return value.size;
    throw new RunFault(`invalid argument for len (type ${kindOf(value)})`);
  },
);

function end(name: string, at: number): BuiltinFunction {
  return oneOf(
    isArrayType,
    (type) => `cannot get ${name} element from ${type}`,
    elementOf,
    (value) => (value !== null && isList(value) ? (value.at(at) ?? null) : null),
  );
}

const take: BuiltinFunction = {
  least: 2,
  most: 2,
  check([list = UNKNOWN, count = UNKNOWN]) {
    if (!["array", "unknown"].includes(list.kind)) return new Misuse(`cannot take from ${typeText(list)}`);
    if (!["int", "unknown"].includes(count.kind))
      return new Misuse(`cannot take ${typeText(count)} elements`);
    return list.kind === "array" ? list : ARRAY;
  },
  call([list, count], run) {
    const items = listArgument(list, "cannot take from");
    const most = countArgument(count);
    if (most < 0) throw new RunFault(`cannot take ${most} elements`);
    run.spend(Math.min(most, items.length));
    return items.slice(0, most);
  },
};

const get: BuiltinFunction = {
  least: 2,
  most: 2,
  check([object = UNKNOWN, key = UNKNOWN]) {
    if (object.kind === "map" && !["string", "unknown"].includes(key.kind))
      return new Misuse(`cannot use ${typeText(key)} to get an element from map`);
    if (object.kind === "array" && !["int", "unknown"].includes(key.kind))
      return new Misuse(`non-integer slice index ${typeText(key)}`);
    if (!["map", "array", "unknown"].includes(object.kind))
      return new Misuse(`type ${typeText(object)} does not support indexing`);
    return elementOf(object);
  },
  call: ([object = null, key = null]) => memberOrNil(object, key),
};

/** Nil for a missing member. */
export function memberOrNil(object: ExpressionValue, key: ExpressionValue): ExpressionValue {
  if (object === null) return null;
  if (isMap(object)) return typeof key === "string" ? (object.get(key) ?? null) : null;
  if (!isList(object)) return null;
  const at = key instanceof Float ? Math.trunc(key.value) : key;
  return typeof at === "number" ? (object.at(at) ?? null) : null;
}

function ofMap(
  problem: string,
  result: Type,
  apply: (map: ReadonlyMap<string, ExpressionValue>) => ExpressionValue,
): BuiltinFunction {
  return oneOf(
    isMapType,
    (type) => problem.replace("%", type),
    () => result,
    (value, run) => {
      if (value === null || !isMap(value)) throw new RunFault(problem.replace("%", kindOf(value)));
      run.spend(value.size);
      return apply(value);
    },
  );
}

function ofList(
  name: string,
  result: (type: Type) => Type,
  apply: (items: readonly ExpressionValue[], run: AnyRun) => ExpressionValue,
  problem = `cannot ${name} %`,
): BuiltinFunction {
  return oneOf(
    isArrayType,
    (type) => problem.replace("%", type),
    result,
    (value, run) => {
      const items = listArgument(value, problem.replace(" %", ""));
      run.spend(items.length);
      return apply(items, run);
    },
  );
}

const fromPairs = ofList(
  "fromPairs",
  () => MAP,
  (pairs, run) => {
    const map = new Map<string, ExpressionValue>();
    for (const pair of pairs) {
      if (pair === null || !isList(pair) || pair.length !== 2)
        throw new RunFault(`invalid pair ${valueText(pair, run)}`);
      map.set(valueText(pair[0] ?? null, run), pair[1] ?? null);
    }
    return map;
  },
  "cannot transform % from pairs",
);

/** Removes duplicates by `==`; 1 and 1.0 are the same. */
function unique(items: readonly ExpressionValue[], run: AnyRun): ExpressionValue {
  const seen = new Set<ExpressionValue>();
  const others: ExpressionValue[] = [];
  return items.filter((item) => {
    const key = item instanceof Float ? item.value : item;
    if (key === null || typeof key !== "object") {
      if (seen.has(key)) return false;
      seen.add(key);
      return true;
    }
    run.spend(others.length + 1);
    if (others.some((other) => equalValues(other, item, run))) return false;
    others.push(item);
    return true;
  });
}

const concat: BuiltinFunction = {
  least: 1,
  most: Number.MAX_SAFE_INTEGER,
  check(args) {
    const bad = args.find(({ kind }) => kind !== "array" && kind !== "unknown");
    return bad === undefined ? ARRAY : new Misuse(`cannot concat ${typeText(bad)}`);
  },
  call(args, run) {
    const lists = args.map((arg) => listArgument(arg, "cannot concat"));
    run.spend(lists.reduce((sum, { length }) => sum + length, 1));
    return lists.flat();
  },
};

function flattened(items: readonly ExpressionValue[], run: AnyRun, depth = 0): ExpressionValue[] {
  run.spend(items.length);
  if (depth > 100) throw new RunFault("flatten: too many arrays inside each other");
  return items.flatMap((item) => (item !== null && isList(item) ? flattened(item, run, depth + 1) : [item]));
}

const sort = plainFunction(
  "sort",
  [ARRAY, STRING],
  ARRAY,
  ([value, order], run) => {
    if (value === null || value === undefined || !isList(value)) return [];
    return sorted(value, [...value], order, run);
  },
  1,
);

/** Sorts items by their keys; items with equal keys keep their order. */
export function sorted(
  items: readonly ExpressionValue[],
  keys: readonly ExpressionValue[],
  order: ExpressionValue | undefined,
  run: AnyRun,
): ExpressionValue[] {
  if (order !== undefined && order !== "asc" && order !== "desc")
    throw new RunFault(`invalid order ${valueText(order, run)}, expected asc or desc`);
  run.spend(items.length * Math.max(1, Math.ceil(Math.log2(items.length + 1))));
  const sign = order === "desc" ? -1 : 1;
  return items
    .map((_item, at) => at)
    .sort((one, other) => sign * (orderOf(keys[one] ?? null, keys[other] ?? null) || 0))
    .map((at) => items[at] ?? null);
}

export const LIST_FUNCTIONS: Readonly<Record<string, BuiltinFunction>> = {
  len,
  first: end("first", 0),
  last: end("last", -1),
  take,
  get,
  keys: ofMap("cannot get keys from %", arrayOf(STRING), (map) => [...map.keys()]),
  values: ofMap("cannot get values from %", ARRAY, (map) => [...map.values()]),
  toPairs: ofMap("cannot transform % to pairs", ARRAY, (map) => [...map].map((pair) => [...pair])),
  fromPairs,
  reverse: ofList(
    "reverse",
    (type) => (type.kind === "array" ? type : ARRAY),
    (items) => items.toReversed(),
  ),
  uniq: ofList("uniq", (type) => (type.kind === "array" ? type : ARRAY), unique),
  concat,
  flatten: ofList(
    "flatten",
    () => ARRAY,
    (items, run) => flattened(items, run),
  ),
  sort,
};
