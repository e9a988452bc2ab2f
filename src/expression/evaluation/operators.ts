/** Operators: type checks and evaluation. */
import { compilePattern, type Pattern, PatternError } from "../../lib/text/pattern.ts";
import { Misuse, RunFault } from "../values/language-error.ts";
import {
  areComparable,
  arrayOf,
  BOOL,
  bothMayBe,
  elementOf,
  FLOAT,
  INT,
  isNumeric,
  isText,
  STRING,
  type Type,
  typeText,
  UNKNOWN,
} from "../values/types.ts";
import {
  compareText,
  type ExpressionValue,
  equalValues,
  Float,
  isInteger,
  isList,
  isMap,
  kindOf,
  toInteger,
  toNumber,
} from "../values/values.ts";
import type { Run } from "./run.ts";

type AnyRun = Run<unknown>;

export interface BinaryOperator {
  /** @returns the type of the result */
  check(left: Type, right: Type): Type | Misuse;
  /** @throws RunFault */
  run(left: ExpressionValue, right: ExpressionValue, run: AnyRun): ExpressionValue;
}

function mismatch(operator: string, left: Type, right: Type): Misuse {
  return new Misuse(
    `invalid operation: ${operator} (mismatched types ${typeText(left)} and ${typeText(right)})`,
  );
}

function fault(operator: string, left: ExpressionValue, right: ExpressionValue): never {
  throw new RunFault(`invalid operation: ${kindOf(left)} ${operator} ${kindOf(right)}`);
}

const isIntType = ({ kind }: Type): boolean => kind === "int";
const isBoolType = ({ kind }: Type): boolean => kind === "bool";

/** `+`, `-`, `*` on two whole numbers and on floats. */
function arithmetic(
  operator: string,
  small: (left: number, right: number) => number,
  large: (left: bigint, right: bigint) => bigint,
): BinaryOperator {
  return {
    check(left, right) {
      if (!bothMayBe(left, right, isNumeric)) return mismatch(operator, left, right);
      if (isIntType(left) && isIntType(right)) return INT;
      return isNumeric(left) && isNumeric(right) ? FLOAT : UNKNOWN;
    },
    run(left, right) {
      if (typeof left === "number" && typeof right === "number") {
        const result = small(left, right);
        // Whole numbers have no negative zero.
        if (Number.isSafeInteger(result)) return result === 0 ? 0 : result;
      }
      if (isInteger(left) && isInteger(right)) return toInteger(large(BigInt(left), BigInt(right)));
      const [one, other] = [toNumber(left), toNumber(right)];
      if (one === undefined || other === undefined) return fault(operator, left, right);
      return new Float(small(one, other));
    },
  };
}

/** `/` and `**`: a float, whatever the operands. */
function floating(operator: string, apply: (left: number, right: number) => number): BinaryOperator {
  return {
    check: (left, right) => (bothMayBe(left, right, isNumeric) ? FLOAT : mismatch(operator, left, right)),
    run(left, right) {
      const [one, other] = [toNumber(left), toNumber(right)];
      if (one === undefined || other === undefined) return fault(operator, left, right);
      return new Float(apply(one, other));
    },
  };
}

const remainder: BinaryOperator = {
  check: (left, right) => (bothMayBe(left, right, isIntType) ? INT : mismatch("%", left, right)),
  run(left, right) {
    if (!isInteger(left) || !isInteger(right)) return fault("%", left, right);
    if (right === 0) throw new RunFault("integer divide by zero");
    if (typeof left === "number" && typeof right === "number") return left % right === 0 ? 0 : left % right;
    return toInteger(BigInt(left) % BigInt(right));
  },
};

const numbers = arithmetic(
  "+",
  (left, right) => left + right,
  (left, right) => left + right,
);

const plus: BinaryOperator = {
  check(left, right) {
    if (isText(left) && isText(right)) return STRING;
    if (bothMayBe(left, right, isText)) return UNKNOWN;
    return numbers.check(left, right);
  },
  run(left, right, run) {
    if (typeof left !== "string" || typeof right !== "string") return numbers.run(left, right, run);
    run.spendText(left.length + right.length);
    return left + right;
  },
};

const equals: BinaryOperator = {
  check: (left, right) => (areComparable(left, right) ? BOOL : mismatch("==", left, right)),
  run: (left, right, run) => equalValues(left, right, run),
};

const differs: BinaryOperator = {
  check: (left, right) => (areComparable(left, right) ? BOOL : mismatch("!=", left, right)),
  run: (left, right, run) => !equalValues(left, right, run),
};

function ordering(operator: string, accepts: (order: number) => boolean): BinaryOperator {
  return {
    check(left, right) {
      const fits = bothMayBe(left, right, isNumeric) || bothMayBe(left, right, isText);
      return fits ? BOOL : mismatch(operator, left, right);
    },
    run: (left, right) => accepts(orderOf(left, right)),
  };
}

/**
 * Negative, 0, positive; NaN if neither is less.
 * @throws RunFault for values without an order
 */
export function orderOf(left: ExpressionValue, right: ExpressionValue): number {
  if (typeof left === "string" && typeof right === "string") return compareText(left, right);
  if (isInteger(left) && isInteger(right)) return left < right ? -1 : left > right ? 1 : 0;
  const [one, other] = [toNumber(left), toNumber(right)];
  if (one === undefined || other === undefined) return fault("<", left, right);
  return one < other ? -1 : one > other ? 1 : one === other ? 0 : Number.NaN;
}

/** `contains` and similar operators; nil contains nothing. */
function onText(operator: string, apply: (text: string, part: string) => boolean): BinaryOperator {
  return {
    check: (left, right) => (bothMayBe(left, right, isText) ? BOOL : mismatch(operator, left, right)),
    run(left, right, run) {
      if (left === null || right === null) return false;
      if (typeof left !== "string" || typeof right !== "string") return fault(operator, left, right);
      run.spendText(left.length);
      return apply(left, right);
    },
  };
}

const isMatchable = ({ kind }: Type): boolean => kind === "string" || kind === "bytes";

const matches: BinaryOperator = {
  check(left, right) {
    const fits = bothMayBe(left, left, isMatchable) && bothMayBe(right, right, isText);
    return fits ? BOOL : mismatch("matches", left, right);
  },
  run(left, right, run) {
    if (left === null || right === null) return false;
    if (typeof right !== "string") return fault("matches", left, right);
    const pattern = patternOf(right);
    if (pattern instanceof Misuse) throw new RunFault(pattern.message);
    run.spendText(right.length * TEXT_OF_PATTERN);
    return matchesPattern(left, pattern, run);
  },
};

/** Cost of compiling a pattern, relative to reading its text. */
const TEXT_OF_PATTERN = 1_000;

export function patternOf(text: string): Pattern | Misuse {
  try {
    return compilePattern(text);
  } catch (error) {
    if (error instanceof PatternError) return new Misuse(error.message);
    throw error;
  }
}

/** A pattern reads a text once, but in steps that grow with the pattern. */
export function matchesPattern(value: ExpressionValue, pattern: Pattern, run: AnyRun): boolean {
  if (value === null) return false;
  const text = value instanceof Uint8Array ? Buffer.from(value).toString("utf8") : value;
  if (typeof text !== "string") return fault("matches", value, pattern.source);
  run.spend(Math.floor((text.length * Math.max(8, pattern.source.length)) / 256) + 1);
  return pattern.test(text);
}

const isContainer = ({ kind }: Type): boolean => kind === "array" || kind === "map" || kind === "unknown";

const isIn: BinaryOperator = {
  check(left, right) {
    if (!isContainer(right)) return mismatch("in", left, right);
    if (right.kind === "map") {
      if (bothMayBe(left, left, isText)) return BOOL;
      return new Misuse(`cannot use ${typeText(left)} as type string in map key`);
    }
    const element = elementOf(right);
    if (areComparable(left, element)) return BOOL;
    return new Misuse(`cannot use ${typeText(left)} as type ${typeText(element)} in array`);
  },
  run(left, right, run) {
    if (right === null) return false;
    if (isMap(right)) {
      if (left === null) return false;
      if (typeof left !== "string") throw new RunFault(`a key is a string, not ${kindOf(left)}`);
      return right.has(left);
    }
    if (!isList(right)) throw new RunFault(`operator "in" not defined on ${kindOf(right)}`);
    run.spend(right.length);
    for (const item of right) if (equalValues(item, left, run)) return true;
    return false;
  },
};

const range: BinaryOperator = {
  check: (left, right) => (bothMayBe(left, right, isIntType) ? arrayOf(INT) : mismatch("..", left, right)),
  run(left, right, run) {
    const [from, to] = [wholeNumber(left), wholeNumber(right)];
    if (to < from) return [];
    const length = Number(BigInt(to) - BigInt(from) + 1n);
    run.spend(length);
    const items = new Array<ExpressionValue>(length);
    for (let at = 0; at < length; at++) {
      items[at] = typeof from === "number" ? numberAt(from, at) : toInteger(from + BigInt(at));
    }
    return items;
  },
};

function numberAt(from: number, at: number): number | bigint {
  const item = from + at;
  return Number.isSafeInteger(item) ? item : toInteger(BigInt(from) + BigInt(at));
}

/** Converts any number to a whole number; fractions are cut off. */
export function wholeNumber(value: ExpressionValue): number | bigint {
  if (isInteger(value)) return value;
  if (!(value instanceof Float)) throw new RunFault(`invalid operation: int(${kindOf(value)})`);
  return truncate(value.value);
}

/** A value outside of 64 bits becomes the smallest whole number, as on most processors. */
export function truncate(value: number): number | bigint {
  const whole = Math.trunc(value);
  if (Number.isSafeInteger(whole)) return whole === 0 ? 0 : whole;
  const isLarge = !(whole >= -(2 ** 63) && whole < 2 ** 63);
  return isLarge ? -(2n ** 63n) : BigInt(whole);
}

function needsBool(operator: string): BinaryOperator {
  return {
    check: (left, right) => (bothMayBe(left, right, isBoolType) ? BOOL : mismatch(operator, left, right)),
    // Never called: the compiler handles both, because they skip their right side.
    run: () => null,
  };
}

export const BINARY_OPERATORS: ReadonlyMap<string, BinaryOperator> = new Map([
  ["+", plus],
  [
    "-",
    arithmetic(
      "-",
      (left, right) => left - right,
      (left, right) => left - right,
    ),
  ],
  [
    "*",
    arithmetic(
      "*",
      (left, right) => left * right,
      (left, right) => left * right,
    ),
  ],
  ["/", floating("/", (left, right) => left / right)],
  ["**", floating("**", (left, right) => left ** right)],
  ["%", remainder],
  ["==", equals],
  ["!=", differs],
  ["<", ordering("<", (order) => order < 0)],
  [">", ordering(">", (order) => order > 0)],
  ["<=", ordering("<=", (order) => order <= 0)],
  [">=", ordering(">=", (order) => order >= 0)],
  ["contains", onText("contains", (text, part) => text.includes(part))],
  ["startsWith", onText("startsWith", (text, part) => text.startsWith(part))],
  ["endsWith", onText("endsWith", (text, part) => text.endsWith(part))],
  ["matches", matches],
  ["in", isIn],
  ["..", range],
  ["and", needsBool("and")],
  ["or", needsBool("or")],
]);

/** The type of `-x`, `+x`, `not x`. */
export function checkUnary(operator: string, operand: Type): Type | Misuse {
  const accepts = operator === "not" ? isBoolType : isNumeric;
  if (!bothMayBe(operand, operand, accepts))
    return new Misuse(`invalid operation: ${operator} (mismatched type ${typeText(operand)})`);
  return operator === "not" ? BOOL : operand;
}

/** The evaluation of `-x`, `+x`, `not x`. The operator is checked once, when the expression is compiled. */
export function unaryOperation(operator: string): (operand: ExpressionValue, run: AnyRun) => ExpressionValue {
  if (operator === "not") return (operand) => !truth(operand);
  return operator === "+" ? positive : negative;
}

function positive(operand: ExpressionValue): ExpressionValue {
  if (toNumber(operand) === undefined) throw new RunFault(`invalid operation: +${kindOf(operand)}`);
  return operand;
}

export function negative(operand: ExpressionValue, run: AnyRun): ExpressionValue {
  if (operand instanceof Float) return new Float(-operand.value);
  if (!isInteger(operand)) throw new RunFault(`invalid operation: -${kindOf(operand)}`);
  return numbersMinus.run(0, operand, run);
}

const numbersMinus = arithmetic(
  "-",
  (left, right) => left - right,
  (left, right) => left - right,
);

/** @throws RunFault for a value that is not Boolean */
export function truth(value: ExpressionValue): boolean {
  if (typeof value === "boolean") return value;
  throw new RunFault(`${kindOf(value)} is neither true nor false`);
}
