/**
 * Values of the two languages. Text, Booleans and whole numbers, which most expressions use, are plain JavaScript values, so that
 * making one costs nothing; a number with a fraction is an object, because 2 and 2.0 are different values.
 */
import { RunFault } from "./language-error.ts";

export type ExpressionValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Float
  | Uint8Array
  | readonly ExpressionValue[]
  | ReadonlyMap<string, ExpressionValue>
  | Callable;

/** A number with a fraction (64 bits). Whole numbers are `number`, or `bigint` where a `number` would not be exact. */
export class Float {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

/** A function of the environment as a value: it can only be called. */
export class Callable {
  readonly name: string;
  readonly call: () => ExpressionValue;

  constructor(name: string, call: () => ExpressionValue) {
    this.name = name;
    this.call = call;
  }
}

export function isInteger(value: ExpressionValue): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

export function isList(value: ExpressionValue): value is readonly ExpressionValue[] {
  return Array.isArray(value);
}

export function isMap(value: ExpressionValue): value is ReadonlyMap<string, ExpressionValue> {
  return value instanceof Map;
}

/** A whole number in its shortest form, cut to 64 bits like the languages' arithmetic. */
export function toInteger(value: bigint): number | bigint {
  const cut = BigInt.asIntN(64, value);
  const small = Number(cut);
  return Number.isSafeInteger(small) ? small : cut;
}

/** The number of an integer or a float, `undefined` for any other value. */
export function toNumber(value: ExpressionValue): number | undefined {
  if (typeof value === "number") return value;
  if (value instanceof Float) return value.value;
  return typeof value === "bigint" ? Number(value) : undefined;
}

/** The kind of a value, as in messages. */
export function kindOf(value: ExpressionValue): string {
  if (value === null) return "nil";
  if (isInteger(value)) return "int";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "string") return "string";
  if (value instanceof Float) return "float";
  if (value instanceof Uint8Array) return "bytes";
  if (value instanceof Callable) return "function";
  return isMap(value) ? "map" : "array";
}

/** Maximum nesting of arrays and maps. */
const MAX_DEPTH = 200;

/** Counts work, so that no expression runs for long. */
export interface Meter {
  /** @throws RunFault when the budget is exceeded */
  spend(amount: number): void;
}

/** `==`: numbers by value, arrays element by element, functions never. */
export function equalValues(left: ExpressionValue, right: ExpressionValue, meter: Meter, depth = 0): boolean {
  if (left === right) return !(left instanceof Callable) && !isNanFloat(left);
  if (left === null || right === null) return false;
  if (typeof left === "string" || typeof right === "string") return false;
  if (isInteger(left) && isInteger(right)) return false;
  const [one, other] = [toNumber(left), toNumber(right)];
  if (one !== undefined && other !== undefined) return one === other;
  guardDepth(depth);
  if (isList(left) && isList(right)) {
    if (left.length !== right.length) return false;
    meter.spend(left.length);
    return left.every((item, at) => equalValues(item, right[at] ?? null, meter, depth + 1));
  }
  if (left instanceof Uint8Array && right instanceof Uint8Array) return Buffer.compare(left, right) === 0;
  if (!isMap(left) || !isMap(right) || left.size !== right.size) return false;
  meter.spend(left.size);
  for (const [key, item] of left) {
    const partner = right.get(key);
    // Inside maps 1 and 1.0 are different, as in expr-lang.
    if (partner === undefined || item instanceof Float !== partner instanceof Float) return false;
    if (!equalValues(item, partner, meter, depth + 1)) return false;
  }
  return true;
}

function isNanFloat(value: ExpressionValue): boolean {
  return value instanceof Float && Number.isNaN(value.value);
}

export function guardDepth(depth: number): void {
  if (depth > MAX_DEPTH) throw new RunFault(`more than ${MAX_DEPTH} arrays or maps inside each other`);
}

/** Order of two strings by their octets, which is that of their code points. */
export function compareText(left: string, right: string): number {
  if (left === right) return 0;
  if (isAscii(left) && isAscii(right)) return left < right ? -1 : 1;
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}

const NOT_ASCII = /\P{ASCII}/u;

export function isAscii(text: string): boolean {
  return !NOT_ASCII.test(text);
}

/** Text as Go prints a value with `%v`. */
export function valueText(value: ExpressionValue, meter: Meter, depth = 0): string {
  if (typeof value === "string") return value;
  if (value === null) return "<nil>";
  if (typeof value === "boolean" || isInteger(value)) return String(value);
  if (value instanceof Float) return floatText(value.value);
  if (value instanceof Callable) return value.name;
  guardDepth(depth);
  if (value instanceof Uint8Array) {
    meter.spend(value.length);
    return `[${value.join(" ")}]`;
  }
  if (isMap(value)) {
    meter.spend(value.size);
    const entries = [...value].sort(([one], [other]) => compareText(one, other));
    return `map[${entries.map(([key, item]) => `${key}:${valueText(item, meter, depth + 1)}`).join(" ")}]`;
  }
  meter.spend(value.length);
  return `[${value.map((item) => valueText(item, meter, depth + 1)).join(" ")}]`;
}

/** A float as in Go's `%v` and `%g`: the fewest digits that are exact, with an exponent from a million on. */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  if (Object.is(value, -0)) return "-0";
  const [digits = "", exponentText = "0"] = value.toExponential().split("e");
  const exponent = Number(exponentText);
  if (exponent >= -4 && exponent < 6) return String(value);
  return withGoExponent(digits, exponent);
}

/** Go writes at least two digits of an exponent, and its sign. */
export function withGoExponent(digits: string, exponent: number): string {
  const size = String(Math.abs(exponent)).padStart(2, "0");
  return `${digits}e${exponent < 0 ? "-" : "+"}${size}`;
}
