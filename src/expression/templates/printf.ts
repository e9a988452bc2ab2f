/** `printf`, with Go's verbs. A mismatch is shown in the output, as `%!d(string=a)`. */
import {
  Callable,
  type ExpressionValue,
  Float,
  floatText,
  isInteger,
  type Meter,
  withGoExponent,
} from "../values/values.ts";
import { isObject, printText, type TemplateValue, typeName } from "./template-value.ts";

/** Larger widths and precisions are reduced: no record has room for more. */
const MAX_WIDTH = 1_000;

interface Format {
  readonly flags: ReadonlySet<string>;
  readonly width: number | undefined;
  readonly precision: number | undefined;
}

const DIRECTIVE = /%([-+# 0]*)(\[[^\]]*\])?(\*|\d+)?(?:\.(\[[^\]]*\])?(\*|\d*))?(\[[^\]]*\])?(.?)/gsu;

export function formatGo(pattern: string, args: readonly TemplateValue[], meter: Meter): string {
  let next = 0;
  let reordered = false;
  const take = (): TemplateValue => args[next++];
  const index = (text: string | undefined): boolean => {
    if (text === undefined) return true;
    const at = Number(text.slice(1, -1));
    reordered = true;
    if (!Number.isInteger(at) || at < 1 || at > args.length) return false;
    next = at - 1;
    return true;
  };
  const text = pattern.replaceAll(
    DIRECTIVE,
    (_all, flagText: string, first, width, second, precision, third, verb: string) => {
      if (verb === "") return "%!(NOVERB)";
      if (verb === "%") return "%";
      const isFound = index(first);
      const wide = width === "*" ? numberOf(take()) : width === undefined ? undefined : Number(width);
      const isFoundToo = index(second);
      const exact =
        precision === "*" ? numberOf(take()) : precision === undefined ? undefined : Number(precision);
      if (!(index(third) && isFound && isFoundToo)) return `%!${verb}(BADINDEX)`;
      if (next >= args.length) return `%!${verb}(${reordered ? "BADINDEX" : "MISSING"})`;
      const flags = new Set(wide !== undefined && wide < 0 ? `${flagText}-` : flagText);
      const bounded = (value: number | undefined) =>
        value === undefined ? undefined : Math.min(Math.abs(value), MAX_WIDTH);
      meter.spend(1);
      return formatOne(verb, take(), { flags, width: bounded(wide), precision: bounded(exact) }, meter);
    },
  );
  if (reordered || next >= args.length) return text;
  const extra = args
    .slice(next)
    .map((arg) =>
      arg === undefined || arg === null ? "<nil>" : `${typeName(arg)}=${printText(arg, meter)}`,
    );
  return `${text}%!(EXTRA ${extra.join(", ")})`;
}

function numberOf(value: TemplateValue): number {
  return typeof value === "number" ? value : 0;
}

function formatOne(verb: string, value: TemplateValue, format: Format, meter: Meter): string {
  if (verb === "T") return padded(typeName(value), format);
  if (value === undefined || value === null)
    return verb === "v" ? padded("<nil>", format) : `%!${verb}(<nil>)`;
  if (isObject(value))
    return verb === "v" || verb === "s" ? padded(value.text(), format) : misfit(verb, value, format, meter);
  const plain = value as ExpressionValue;
  const formatted = ofKind(verb, plain, format, meter);
  return formatted ?? misfit(verb, value, format, meter);
}

/** @returns `undefined` if the verb does not fit */
function ofKind(verb: string, value: ExpressionValue, format: Format, meter: Meter): string | undefined {
  if (typeof value === "boolean")
    return verb === "t" || verb === "v" ? padded(String(value), format) : undefined;
  if (isInteger(value)) return formatInteger(verb, BigInt(value), format);
  if (value instanceof Float) return formatFloat(verb, value.value, format);
  if (typeof value === "string") return formatText(verb, value, format);
  if (value instanceof Uint8Array && "sxXq".includes(verb))
    return formatText(verb, Buffer.from(value).toString("utf8"), format);
  if (value instanceof Callable) return undefined;
  if (value === null) return undefined;
  const items = value instanceof Uint8Array ? Array.from(value) : value;
  if (!Array.isArray(items))
    return formatMap(verb, items as ReadonlyMap<string, ExpressionValue>, format, meter);
  if (verb === "p") return undefined;
  meter.spend(items.length);
  if (verb === "v" && format.flags.has("#")) {
    const inside = items.map((item) => formatOne("v", item, format, meter));
    return `${typeName(value)}{${inside.join(", ")}}`;
  }
  return `[${items.map((item) => (item === null ? "<nil>" : formatOne(verb, item, format, meter))).join(" ")}]`;
}

function formatMap(
  verb: string,
  map: ReadonlyMap<string, ExpressionValue>,
  format: Format,
  meter: Meter,
): string | undefined {
  if (verb === "p") return undefined;
  const keys = [...map.keys()].sort();
  meter.spend(keys.length);
  const entries = keys.map((key) => {
    const [one, other] = [formatOne(verb, key, format, meter), formatOne(verb, map.get(key), format, meter)];
    return `${one}:${other}`;
  });
  if (verb === "v" && format.flags.has("#")) return `${typeName(map)}{${entries.join(", ")}}`;
  return `map[${entries.join(" ")}]`;
}

function misfit(verb: string, value: TemplateValue, format: Format, meter: Meter): string {
  const plain = value as ExpressionValue;
  const shown = isObject(value)
    ? value.text()
    : (ofKind("v", plain, { ...format, flags: withoutSharp(format) }, meter) ?? printText(value, meter));
  return `%!${verb}(${typeName(value)}=${shown})`;
}

function withoutSharp({ flags }: Format): ReadonlySet<string> {
  return new Set([...flags].filter((flag) => flag !== "#"));
}

function padded(text: string, { flags, width }: Format): string {
  const missing = (width ?? 0) - Array.from(text).length;
  if (missing <= 0) return text;
  if (flags.has("-")) return text + " ".repeat(missing);
  return (flags.has("0") ? "0" : " ").repeat(missing) + text;
}

const BASES: Readonly<Record<string, number>> = { d: 10, v: 10, b: 2, o: 8, O: 8, x: 16, X: 16 };
const PREFIXES: Readonly<Record<string, string>> = { b: "0b", o: "0", x: "0x", X: "0X" };

function formatInteger(verb: string, value: bigint, format: Format): string | undefined {
  if (verb === "c") return padded(characterOf(value), format);
  if (verb === "q") return padded(quotedCharacter(characterOf(value), format), format);
  if (verb === "U") {
    const code = value.toString(16).toUpperCase().padStart(4, "0");
    return padded(`U+${code}${format.flags.has("#") ? ` '${characterOf(value)}'` : ""}`, {
      ...format,
      flags: spaces(format),
    });
  }
  const base = BASES[verb];
  if (base === undefined) return undefined;
  let digits = (value < 0n ? -value : value).toString(base);
  if (verb === "X") digits = digits.toUpperCase();
  const { flags, width, precision } = format;
  if (precision === 0 && value === 0n) return padded("", { ...format, flags: spaces(format) });
  if (precision !== undefined) digits = digits.padStart(precision, "0");
  const showsPlus = flags.has("+") && verb !== "v";
  const sign = value < 0n ? "-" : showsPlus ? "+" : flags.has(" ") ? " " : "";
  const prefix = verb === "O" ? "0o" : flags.has("#") ? (PREFIXES[verb] ?? "") : "";
  if (flags.has("0") && !flags.has("-") && precision === undefined)
    digits = digits.padStart((width ?? 0) - sign.length, "0");
  return padded(sign + (prefix === "0" && digits.startsWith("0") ? "" : prefix) + digits, {
    ...format,
    flags: spaces(format),
  });
}

function spaces({ flags }: Format): ReadonlySet<string> {
  return new Set([...flags].filter((flag) => flag !== "0"));
}

function characterOf(value: bigint): string {
  const isCharacter = value >= 0n && value <= 0x10ffffn && !(value >= 0xd800n && value <= 0xdfffn);
  return isCharacter ? String.fromCodePoint(Number(value)) : "\ufffd";
}

function quotedCharacter(character: string, { flags }: Format): string {
  if (character === "'") return "'\\''";
  return `'${quoted(character, flags.has("+")).slice(1, -1).replaceAll('\\"', '"')}'`;
}

function formatText(verb: string, value: string, format: Format): string | undefined {
  const { flags, precision } = format;
  const cut = precision === undefined ? value : Array.from(value).slice(0, precision).join("");
  switch (verb) {
    case "v":
      return padded(flags.has("#") ? quoted(cut, false) : cut, format);
    case "s":
      return padded(cut, format);
    case "q":
      return padded(
        flags.has("#") && !/[`\p{Cc}]/u.test(cut) ? `\`${cut}\`` : quoted(cut, flags.has("+")),
        format,
      );
    case "x":
    case "X": {
      const octets = Buffer.from(value).subarray(0, precision);
      const prefix = flags.has("#") && octets.length > 0 ? "0x" : "";
      const between = flags.has(" ") ? ` ${prefix}` : "";
      const text = prefix + Array.from(octets, (octet) => octet.toString(16).padStart(2, "0")).join(between);
      return padded(verb === "X" ? text.toUpperCase() : text, format);
    }
    default:
      return undefined;
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  "\x07": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  '"': '\\"',
  "\\": "\\\\",
};

/** In double quotes, with Go's escapes. */
export function quoted(text: string, asciiOnly: boolean): string {
  const escaped = Array.from(text, (character) => {
    const known = ESCAPES[character];
    if (known !== undefined) return known;
    const code = character.codePointAt(0) ?? 0;
    if (code < 0x20 || code === 0x7f) return `\\x${code.toString(16).padStart(2, "0")}`;
    if (code < 0x7f || (!asciiOnly && /[\p{L}\p{M}\p{N}\p{P}\p{S}]/u.test(character))) return character;
    return code > 0xffff
      ? `\\U${code.toString(16).padStart(8, "0")}`
      : `\\u${code.toString(16).padStart(4, "0")}`;
  });
  return `"${escaped.join("")}"`;
}

function formatFloat(verb: string, value: number, format: Format): string | undefined {
  if (!"veEfFgGxXb".includes(verb)) return undefined;
  const { flags, precision, width } = format;
  const magnitude = Math.abs(value);
  let digits: string;
  if (!Number.isFinite(value)) digits = Number.isNaN(value) ? "NaN" : "Inf";
  else if (verb === "f" || verb === "F")
    digits =
      magnitude < 1e21 ? magnitude.toFixed(Math.min(precision ?? 6, 100)) : BigInt(magnitude).toString();
  else if (verb === "e" || verb === "E") digits = exponential(magnitude, precision ?? 6);
  else if (verb === "x" || verb === "X") digits = hexadecimal(magnitude, precision);
  else digits = precision === undefined ? floatText(magnitude) : shortest(magnitude, precision);
  if (verb === "E" || verb === "G" || verb === "X") digits = digits.toUpperCase();
  const isNegative = value < 0 || Object.is(value, -0);
  const sign = isNegative ? "-" : flags.has("+") || digits === "Inf" ? "+" : flags.has(" ") ? " " : "";
  const isPlain = digits === "Inf" || digits === "NaN";
  if (flags.has("0") && !flags.has("-") && !isPlain)
    digits = digits.padStart((width ?? 0) - sign.length, "0");
  return padded((digits === "NaN" ? "" : sign) + digits, { ...format, flags: spaces(format) });
}

function exponential(value: number, precision: number): string {
  const [digits = "", exponent = "0"] = value.toExponential(Math.min(precision, 100)).split("e");
  return withGoExponent(digits, Number(exponent));
}

/** `%.3g`: this many digits, without trailing zeros. */
function shortest(value: number, precision: number): string {
  const places = Math.max(precision, 1);
  const exponent = Number(value.toExponential(Math.min(places - 1, 100)).split("e")[1] ?? 0);
  if (exponent < -4 || exponent >= places) {
    const [digits = ""] = value.toExponential(Math.min(places - 1, 100)).split("e");
    return withGoExponent(
      digits.replace(/\.?0+$/, (zeros) => (digits.includes(".") ? "" : zeros)),
      exponent,
    );
  }
  const text = value.toPrecision(Math.min(places, 100));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** `0x1.8p+00`. */
function hexadecimal(value: number, precision: number | undefined): string {
  if (value === 0) return "0x0p+00";
  let exponent = Math.floor(Math.log2(value));
  let mantissa = value / 2 ** exponent;
  if (mantissa >= 2) {
    mantissa /= 2;
    exponent++;
  }
  const places = precision ?? 13;
  let digits = Math.round((mantissa - 1) * 16 ** Math.min(places, 13))
    .toString(16)
    .padStart(Math.min(places, 13), "0");
  if (precision === undefined) digits = digits.replace(/0+$/, "");
  else digits = digits.padEnd(places, "0");
  const power = String(Math.abs(exponent)).padStart(2, "0");
  return `0x1${digits === "" ? "" : `.${digits}`}p${exponent < 0 ? "-" : "+"}${power}`;
}
