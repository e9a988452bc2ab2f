/** Functions on numbers. */

import { BINARY_OPERATORS, negative, orderOf, truncate } from "../evaluation/operators.ts";
import { Misuse, RunFault } from "../values/language-error.ts";
import { FLOAT, INT, isNumeric, type Type, typeText, UNKNOWN } from "../values/types.ts";
import {
  type ExpressionValue,
  Float,
  isInteger,
  isList,
  kindOf,
  toInteger,
  toNumber,
} from "../values/values.ts";
import { type AnyRun, type BuiltinFunction, oneOf, plainFunction } from "./function-kit.ts";

function numberOf(value: ExpressionValue, name: string): number {
  const number = toNumber(value);
  if (number === undefined) throw new RunFault(`invalid argument for ${name} (type ${kindOf(value)})`);
  return number;
}

/** A function of one number. */
function onNumber(
  name: string,
  result: (type: Type) => Type,
  apply: (value: ExpressionValue, run: AnyRun) => ExpressionValue,
): BuiltinFunction {
  const problem = (type: string) => `invalid argument for ${name} (type ${type})`;
  return oneOf(isNumeric, problem, result, (value, run) => {
    numberOf(value, name);
    return apply(value, run);
  });
}

function rounding(name: string, apply: (value: number) => number): BuiltinFunction {
  return onNumber(
    name,
    () => FLOAT,
    (value) => new Float(apply(numberOf(value, name))),
  );
}

/** Half away from zero. */
function roundHalfAway(value: number): number {
  const whole = Math.trunc(value);
  return Math.abs(value - whole) >= 0.5 ? whole + Math.sign(value) : whole;
}

const int = oneOf(
  ({ kind }) => ["int", "float", "string"].includes(kind),
  (type) => `invalid argument for int (type ${type})`,
  () => INT,
  (value) => {
    if (isInteger(value)) return value;
    if (value instanceof Float) return truncate(value.value);
    if (typeof value === "string" && /^[+-]?\d+$/.test(value)) {
      const whole = BigInt(value.replace("+", ""));
      if (BigInt.asIntN(64, whole) === whole) return toInteger(whole);
    }
    throw new RunFault(`invalid operation: int(${typeof value === "string" ? value : kindOf(value)})`);
  },
);

const float = oneOf(
  ({ kind }) => ["int", "float", "string"].includes(kind),
  (type) => `invalid argument for float (type ${type})`,
  () => FLOAT,
  (value) => {
    const number = typeof value === "string" ? parseFloatText(value) : toNumber(value);
    if (number !== undefined) return new Float(number);
    throw new RunFault(`invalid operation: float(${typeof value === "string" ? value : kindOf(value)})`);
  },
);

/** A number in any of Go's forms: decimal, hexadecimal with a binary exponent, `Inf`, `NaN`. */
function parseFloatText(text: string): number | undefined {
  const special = /^([+-]?)(inf|infinity|nan)$/i.exec(text);
  if (special !== null) {
    if (special[2]?.toLowerCase() === "nan") return special[1] === "" ? Number.NaN : undefined;
    return special[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  }
  const plain = text.replaceAll(/(?<=[\da-fA-F])_(?=[\da-fA-F])/g, "");
  const hex = /^([+-]?)0[xX]([\da-fA-F]*)(?:\.([\da-fA-F]*))?[pP]([+-]?\d+)$/.exec(plain);
  if (hex !== null) {
    const [, sign, whole = "", fraction = "", exponent = "0"] = hex;
    if (whole + fraction === "") return undefined;
    const digits = Number.parseInt(`0${whole}${fraction}`, 16);
    const size = digits * 2 ** (Number(exponent) - 4 * fraction.length);
    return sign === "-" ? -size : size;
  }
  if (!/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(plain)) return undefined;
  const number = Number(plain);
  return Number.isFinite(number) ? number : undefined;
}

/** `max`, `min`, `mean`, `median`: numbers and arrays of numbers, to any depth. */
function overNumbers(
  name: string,
  empty: ExpressionValue,
  apply: (numbers: readonly ExpressionValue[]) => ExpressionValue,
  keeps: boolean,
): BuiltinFunction {
  return {
    least: 1,
    most: Number.MAX_SAFE_INTEGER,
    check(args) {
      const bad = args.find(({ kind }) => !["int", "float", "array", "unknown"].includes(kind));
      if (bad !== undefined) return new Misuse(`invalid argument for ${name} (type ${typeText(bad)})`);
      const [first] = args;
      if (first === undefined || !args.every(({ kind }) => kind === first.kind && isNumeric(first)))
        return UNKNOWN;
      return keeps ? first : FLOAT;
    },
    call(args, run) {
      const numbers: ExpressionValue[] = [];
      gather(args, numbers, name, run, 0);
      return numbers.length === 0 ? empty : apply(numbers);
    },
  };
}

function gather(
  values: readonly ExpressionValue[],
  numbers: ExpressionValue[],
  name: string,
  run: AnyRun,
  depth: number,
): void {
  run.spend(values.length);
  if (depth > 100) throw new RunFault(`${name}: too many arrays inside each other`);
  for (const value of values) {
    if (isList(value)) gather(value, numbers, name, run, depth + 1);
    else if (value !== null || name === "mean" || name === "median") {
      numberOf(value, name);
      numbers.push(value);
    }
  }
}

const pick = (wins: (order: number) => boolean) => (numbers: readonly ExpressionValue[]) =>
  numbers.reduce((best, value) => (wins(orderOf(value, best)) ? value : best));

/** Computed as floats, since an average may have a fraction. */
function mean(numbers: readonly ExpressionValue[]): ExpressionValue {
  const sum = numbers.reduce<number>((total, value) => total + numberOf(value, "mean"), 0);
  return new Float(sum / numbers.length);
}

function median(numbers: readonly ExpressionValue[]): ExpressionValue {
  const sorted = numbers.map((value) => numberOf(value, "median")).sort((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? 0;
  return new Float(sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? 0)) / 2);
}

function bits(name: string, apply: (left: bigint, right: bigint) => bigint): BuiltinFunction {
  return plainFunction(name, [INT, INT], INT, ([left = null, right = null]) => {
    if (!isInteger(left) || !isInteger(right))
      throw new RunFault(`${name} needs whole numbers, not ${kindOf(isInteger(left) ? right : left)}`);
    return toInteger(apply(BigInt(left), BigInt(right)));
  });
}

function shift(name: string, apply: (value: bigint, count: bigint) => bigint): BuiltinFunction {
  return bits(name, (value, count) => {
    if (count < 0n) throw new RunFault(`invalid operation: negative shift count ${count}`);
    // A larger shift gives the same result, and a huge one would make a huge number.
    return apply(value, count > 64n ? 64n : count);
  });
}

/** @throws RunFault */
export function addNumbers(left: ExpressionValue, right: ExpressionValue, run: AnyRun): ExpressionValue {
  return BINARY_OPERATORS.get("+")?.run(left, right, run) ?? null;
}

export const NUMBER_FUNCTIONS: Readonly<Record<string, BuiltinFunction>> = {
  abs: onNumber(
    "abs",
    (type) => type,
    (value, run) => (numberOf(value, "abs") < 0 ? negative(value, run) : value),
  ),
  ceil: rounding("ceil", Math.ceil),
  floor: rounding("floor", Math.floor),
  round: rounding("round", roundHalfAway),
  int,
  float,
  max: overNumbers(
    "max",
    null,
    pick((order) => order > 0),
    true,
  ),
  min: overNumbers(
    "min",
    null,
    pick((order) => order < 0),
    true,
  ),
  mean: overNumbers("mean", new Float(0), mean, false),
  median: overNumbers("median", new Float(0), median, false),
  bitand: bits("bitand", (left, right) => left & right),
  bitor: bits("bitor", (left, right) => left | right),
  bitxor: bits("bitxor", (left, right) => left ^ right),
  bitnand: bits("bitnand", (left, right) => left & ~right),
  bitnot: plainFunction("bitnot", [INT], INT, ([value = null]) => {
    if (!isInteger(value)) throw new RunFault(`bitnot needs a whole number, not ${kindOf(value)}`);
    return toInteger(~BigInt(value));
  }),
  bitshl: shift("bitshl", (value, count) => value << count),
  bitshr: shift("bitshr", (value, count) => value >> count),
  bitushr: shift("bitushr", (value, count) => BigInt.asUintN(64, value) >> count),
};
