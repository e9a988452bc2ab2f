/** The functions of templates: Go's, and CoreDNS's `parseInt`. The executor handles `and` and `or`, because they skip arguments. */
import { RunFault } from "../values/language-error.ts";
import { octetLength } from "../values/octet-text.ts";
import {
  Callable,
  compareText,
  type ExpressionValue,
  Float,
  isInteger,
  isList,
  isMap,
  type Meter,
} from "../values/values.ts";
import { formatGo } from "./printf.ts";
import { isObject, isTrue, printText, type TemplateValue, TextMap, typeName } from "./template-value.ts";

export interface TemplateFunction {
  readonly least: number;
  readonly most: number;
  /** Kinds of arguments, by position; others are refused. */
  readonly kinds?: readonly ("string" | "int")[];
  /** @throws RunFault */
  call(args: readonly TemplateValue[], meter: Meter): TemplateValue;
}

const ANY = Number.MAX_SAFE_INTEGER;

/** A single value, for `html` and similar functions. */
function joined(args: readonly TemplateValue[], meter: Meter): string {
  if (args.length === 1 && (args[0] === undefined || args[0] === null)) return "<no value>";
  return print(args, meter);
}

/** With a space between two arguments if neither is a text. */
function print(args: readonly TemplateValue[], meter: Meter): string {
  let text = "";
  for (const [at, arg] of args.entries()) {
    if (at > 0 && typeof arg !== "string" && typeof args[at - 1] !== "string") text += " ";
    text += printText(arg, meter);
  }
  return text;
}

function len(value: TemplateValue): number {
  if (typeof value === "string") return octetLength(value);
  if (value === undefined || value === null) throw new RunFault("error calling len: len of nil");
  const plain = value as ExpressionValue;
  if (plain instanceof Uint8Array || (plain !== null && isList(plain))) return plain.length;
  if (plain !== null && !isObject(value) && isMap(plain)) return plain.size;
  throw new RunFault(`error calling len: len of type ${typeName(value)}`);
}

function position(value: TemplateValue, most: number, name: string): number {
  if (value === undefined || value === null)
    throw new RunFault(`error calling ${name}: cannot index slice/array with nil`);
  if (!isInteger(value as ExpressionValue))
    throw new RunFault(`error calling ${name}: cannot index slice/array with type ${typeName(value)}`);
  const at = Number(value);
  if (at < 0 || at > most) throw new RunFault(`error calling ${name}: index out of range: ${at}`);
  return at;
}

function index([item, ...keys]: readonly TemplateValue[]): TemplateValue {
  let value: TemplateValue = item;
  if (value === undefined || value === null) throw new RunFault("error calling index: index of untyped nil");
  for (const key of keys) value = indexOne(value, key);
  return value;
}

function indexOne(value: TemplateValue, key: TemplateValue): TemplateValue {
  if (value === undefined || value === null) throw new RunFault("error calling index: index of nil pointer");
  if (isObject(value)) throw new RunFault(`error calling index: can't index item of type ${value.typeName}`);
  if (typeof value === "string") {
    const octets = Buffer.from(value);
    return octets[position(key, octets.length - 1, "index")];
  }
  const plain = value as ExpressionValue;
  if (plain !== null && (isList(plain) || plain instanceof Uint8Array)) {
    return plain[position(key, plain.length - 1, "index")];
  }
  if (plain === null || !isMap(plain))
    throw new RunFault(`error calling index: can't index item of type ${typeName(value)}`);
  if (typeof key === "string") return plain.get(key) ?? (plain instanceof TextMap ? "" : null);
  throw new RunFault(`error calling index: value has type ${typeName(key)}; should be string`);
}

function slice([item, ...bounds]: readonly TemplateValue[]): TemplateValue {
  if (item === undefined || item === null) throw new RunFault("error calling slice: slice of untyped nil");
  const plain = item as ExpressionValue;
  const isText = typeof plain === "string";
  if (isObject(item) || !(isText || plain instanceof Uint8Array || (plain !== null && isList(plain))))
    throw new RunFault(`error calling slice: can't slice item of type ${typeName(item)}`);
  const items = isText ? Buffer.from(plain) : plain;
  if (bounds.length > 3) throw new RunFault(`error calling slice: too many slice indexes: ${bounds.length}`);
  if (bounds.length === 3 && isText) throw new RunFault("error calling slice: cannot 3-index slice a string");
  const [from = 0, to = items.length, most = items.length] = bounds.map((bound) =>
    position(bound, items.length, "slice"),
  );
  if (from > to) throw new RunFault(`error calling slice: invalid slice index: ${from} > ${to}`);
  if (to > most) throw new RunFault(`error calling slice: invalid slice index: ${to} > ${most}`);
  return isText
    ? Buffer.from(items as Uint8Array)
        .subarray(from, to)
        .toString("utf8")
    : items.slice(from, to);
}

type BasicKind = "bool" | "int" | "float" | "string" | "nil";

function basicKind(value: TemplateValue): BasicKind | undefined {
  if (value === undefined || value === null) return "nil";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "string") return "string";
  if (typeof value === "number" || typeof value === "bigint") return "int";
  return value instanceof Float ? "float" : undefined;
}

function incompatible(name: string, left: TemplateValue, right: TemplateValue): never {
  throw new RunFault(
    `error calling ${name}: incompatible types for comparison: ${typeName(left)} and ${typeName(right)}`,
  );
}

function eq([first, ...others]: readonly TemplateValue[]): boolean {
  if (others.length === 0) throw new RunFault("error calling eq: missing argument for comparison");
  for (const other of others) if (same(first, other)) return true;
  return false;
}

function same(left: TemplateValue, right: TemplateValue): boolean {
  const [one, other] = [basicKind(left), basicKind(right)];
  if (one === "nil" || other === "nil") return one === other;
  for (const [kind, value] of [
    [one, left],
    [other, right],
  ] as const) {
    if (kind === undefined && !isObject(value) && one === other)
      throw new RunFault(`error calling eq: non-comparable type ${typeName(value)}`);
  }
  if (one !== other) return incompatible("eq", left, right);
  return left instanceof Float && right instanceof Float ? left.value === right.value : left === right;
}

function order(name: string, accepts: (order: number) => boolean): TemplateFunction {
  return {
    least: 2,
    most: 2,
    call([left, right]) {
      const [one, other] = [basicKind(left), basicKind(right)];
      if (one === undefined || other === undefined || one === "nil" || other === "nil")
        throw new RunFault(`error calling ${name}: invalid type for comparison`);
      if (one !== other) return incompatible(name, left, right);
      if (one === "bool") throw new RunFault(`error calling ${name}: invalid type for comparison`);
      return accepts(orderOf(left as ExpressionValue, right as ExpressionValue));
    },
  };
}

function orderOf(left: ExpressionValue, right: ExpressionValue): number {
  if (typeof left === "string" && typeof right === "string") return compareText(left, right);
  const [one, other] = [left, right].map((value) => (value instanceof Float ? value.value : value));
  if (one === undefined || other === undefined || one === null || other === null) return Number.NaN;
  return one < other ? -1 : one > other ? 1 : one === other ? 0 : Number.NaN;
}

/** An argument that is known to be a text. */
function textOf(value: TemplateValue): string {
  return typeof value === "string" ? value : "";
}

/** Unsigned: text in a base, within this many bits. */
function parseInteger([text, base, bits]: readonly TemplateValue[]): TemplateValue {
  const [word, radix, size] = [textOf(text), Number(base), Number(bits)];
  const fail = (reason: string): never => {
    throw new RunFault(`error calling parseInt: parsing ${JSON.stringify(word)}: ${reason}`);
  };
  if (radix !== 0 && (radix < 2 || radix > 36)) return fail(`invalid base ${radix}`);
  if (size < 0 || size > 64) return fail(`invalid bit size ${size}`);
  const [, prefix = "", digits = ""] =
    /^(0[xX]_?|0[oO]_?|0[bB]_?|0(?=_?\d))?(.*)$/s.exec(radix === 0 ? word : "") ?? [];
  const bases: Readonly<Record<string, number>> = { x: 16, o: 8, b: 2, "": 10 };
  const letter = prefix.charAt(1).toLowerCase();
  const found = radix !== 0 ? radix : prefix === "0" ? 8 : (bases[letter] ?? 10);
  const plain =
    radix !== 0 ? word : /^[\da-zA-Z]+(_[\da-zA-Z]+)*$/.test(digits) ? digits.replaceAll("_", "") : "";
  if (plain === "") return fail("invalid syntax");
  let value = 0n;
  for (const character of plain.toLowerCase()) {
    const digit = /^[\da-z]$/.test(character) ? Number.parseInt(character, 36) : 36;
    if (digit >= found) return fail("invalid syntax");
    value = value * BigInt(found) + BigInt(digit);
    if (value >= 1n << BigInt(size === 0 ? 64 : size)) return fail("value out of range");
  }
  const small = Number(value);
  return Number.isSafeInteger(small) ? small : value;
}

const HTML: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "'": "&#39;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&#34;",
};

const JS: Readonly<Record<string, string>> = {
  "\\": "\\\\",
  "'": "\\'",
  '"': '\\"',
  "<": "\\u003C",
  ">": "\\u003E",
  "&": "\\u0026",
  "=": "\\u003D",
};

function escapeJs(text: string): string {
  return text.replaceAll(/[\\'"<>&=]|[\p{Cc}\p{Zl}\p{Zp}\p{Cf}]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return JS[character] ?? `\\u${code.toString(16).toUpperCase().padStart(4, "0")}`;
  });
}

function escapeUrl(text: string): string {
  return encodeURIComponent(text.toWellFormed())
    .replaceAll("%20", "+")
    .replaceAll(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
}

function callValue([value, ...args]: readonly TemplateValue[]): TemplateValue {
  if (value === undefined || value === null) throw new RunFault("error calling call: call of nil");
  if (!(value instanceof Callable))
    throw new RunFault(`error calling call: non-function of type ${typeName(value)}`);
  if (args.length > 0)
    throw new RunFault(`error calling call: wrong number of args: got ${args.length} want 0`);
  return value.call();
}

export const TEMPLATE_FUNCTIONS: ReadonlyMap<string, TemplateFunction> = new Map<string, TemplateFunction>([
  ["and", { least: 1, most: ANY, call: (args) => args.at(-1) }],
  ["or", { least: 1, most: ANY, call: (args) => args.at(-1) }],
  ["not", { least: 1, most: 1, call: ([value]) => !isTrue(value) }],
  ["len", { least: 1, most: 1, call: ([value]) => len(value) }],
  ["index", { least: 1, most: ANY, call: index }],
  ["slice", { least: 1, most: ANY, call: slice }],
  ["print", { least: 0, most: ANY, call: print }],
  [
    "println",
    { least: 0, most: ANY, call: (args, meter) => `${args.map((arg) => printText(arg, meter)).join(" ")}\n` },
  ],
  [
    "printf",
    {
      least: 1,
      most: ANY,
      kinds: ["string"],
      call: ([pattern, ...args], meter) => formatGo(textOf(pattern), args, meter),
    },
  ],
  [
    "html",
    {
      least: 0,
      most: ANY,
      call: (args, meter) => joined(args, meter).replaceAll(/[&'<>"]/g, (mark) => HTML[mark] ?? mark),
    },
  ],
  ["js", { least: 0, most: ANY, call: (args, meter) => escapeJs(joined(args, meter)) }],
  ["urlquery", { least: 0, most: ANY, call: (args, meter) => escapeUrl(joined(args, meter)) }],
  ["call", { least: 1, most: ANY, call: callValue }],
  ["eq", { least: 1, most: ANY, call: eq }],
  ["ne", { least: 2, most: 2, call: (args) => !eq(args) }],
  ["lt", order("lt", (found) => found < 0)],
  ["le", order("le", (found) => found <= 0)],
  ["gt", order("gt", (found) => found > 0)],
  ["ge", order("ge", (found) => found >= 0)],
  ["parseInt", { least: 3, most: 3, kinds: ["string", "int", "int"], call: parseInteger }],
]);
