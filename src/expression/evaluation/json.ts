/** JSON as the expression language reads and writes it. */
import { RunFault } from "../values/language-error.ts";
import {
  Callable,
  compareText,
  type ExpressionValue,
  Float,
  guardDepth,
  isInteger,
  isMap,
  type Meter,
} from "../values/values.ts";

/** Indented by two spaces, keys in order. */
export function toJson(value: ExpressionValue, meter: Meter): string {
  return jsonText(value, meter, "\n", 0);
}

function jsonText(value: ExpressionValue, meter: Meter, lineBreak: string, depth: number): string {
  if (value === null || typeof value === "boolean" || isInteger(value)) return String(value);
  if (typeof value === "string") return quoted(value);
  if (value instanceof Float) {
    if (!Number.isFinite(value.value)) throw new RunFault(`json: unsupported value: ${value.value}`);
    return Object.is(value.value, -0) ? "-0" : String(value.value);
  }
  if (value instanceof Callable) throw new RunFault("json: a function cannot be written");
  if (value instanceof Uint8Array) return quoted(Buffer.from(value).toString("base64"));
  guardDepth(depth);
  const inner = `${lineBreak}  `;
  if (isMap(value)) {
    meter.spend(value.size);
    if (value.size === 0) return "{}";
    const entries = [...value].sort(([one], [other]) => compareText(one, other));
    const lines = entries.map(([key, item]) => `${quoted(key)}: ${jsonText(item, meter, inner, depth + 1)}`);
    return `{${inner}${lines.join(`,${inner}`)}${lineBreak}}`;
  }
  meter.spend(value.length);
  if (value.length === 0) return "[]";
  const lines = value.map((item) => jsonText(item, meter, inner, depth + 1));
  return `[${inner}${lines.join(`,${inner}`)}${lineBreak}]`;
}

function quoted(text: string): string {
  return JSON.stringify(text).replaceAll(/[<>&\u2028\u2029]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

/** All numbers become floats. */
export function fromJson(text: string, meter: Meter): ExpressionValue {
  meter.spend(text.length);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new RunFault(error instanceof Error ? `invalid JSON: ${error.message}` : "invalid JSON");
  }
  return fromParsed(parsed, 0);
}

function fromParsed(parsed: unknown, depth: number): ExpressionValue {
  if (typeof parsed === "number") return new Float(parsed);
  if (typeof parsed === "string" || typeof parsed === "boolean") return parsed;
  if (typeof parsed !== "object" || parsed === null) return null;
  guardDepth(depth);
  if (Array.isArray(parsed)) return parsed.map((item) => fromParsed(item, depth + 1));
  return new Map(Object.entries(parsed).map(([key, item]) => [key, fromParsed(item, depth + 1)]));
}
