/** Values of templates: those of expressions, objects with fields, and no value. */
import {
  Callable,
  type ExpressionValue,
  Float,
  isInteger,
  isList,
  isMap,
  kindOf,
  type Meter,
  valueText,
} from "../values/values.ts";

/** `undefined` is the value of a missing key; nil is a value. */
export type TemplateValue = ExpressionValue | TemplateObject | undefined | readonly TemplateObject[];

/** An object with named fields. */
export interface TemplateObject {
  readonly typeName: string;
  /** `undefined` if there is no such field. */
  field(name: string): TemplateMember | undefined;
  /** As `print` shows it. */
  text(): string;
}

/** A field, or a method with this many text parameters. */
export interface TemplateMember {
  readonly parameters: number;
  get(args: readonly string[]): TemplateValue;
}

/** A map with text values: for `index`, a missing key has the empty text. */
export class TextMap extends Map<string, string> {}

export function isObject(value: TemplateValue): value is TemplateObject {
  return typeof value === "object" && value !== null && "typeName" in value;
}

export function isPlain(value: TemplateValue): value is ExpressionValue | undefined {
  return !isObject(value);
}

/** Whether `if`, `with`, `and` and `or` take the value for true. */
export function isTrue(value: TemplateValue): boolean {
  if (value === undefined || value === null || value === false || value === 0 || value === "") return false;
  if (isObject(value)) return true;
  if (value instanceof Float) return value.value !== 0;
  if (value instanceof Uint8Array) return value.length > 0;
  if (typeof value !== "object" || value instanceof Callable) return true;
  return isMap(value as ExpressionValue)
    ? (value as ReadonlyMap<string, ExpressionValue>).size > 0
    : (value as readonly unknown[]).length > 0;
}

/** As the output of an action. */
export function shownText(value: TemplateValue, meter: Meter): string {
  return value === undefined || value === null ? "<no value>" : printText(value, meter);
}

/** As `print` and `%v` show it. */
export function printText(value: TemplateValue, meter: Meter): string {
  if (value === undefined) return "<nil>";
  if (isObject(value)) return value.text();
  if (Array.isArray(value) && value.some((item) => isObject(item)))
    return `[${value.map((item) => printText(item, meter)).join(" ")}]`;
  return valueText(value as ExpressionValue, meter);
}

/** The type in Go's words, which `printf` shows if a verb does not fit. */
export function typeName(value: TemplateValue): string {
  if (value === undefined || value === null) return "<nil>";
  if (isObject(value)) return value.typeName;
  const plain = value as ExpressionValue;
  if (plain instanceof TextMap) return "map[string]string";
  if (isInteger(plain)) return "int";
  if (plain instanceof Float) return "float64";
  if (plain instanceof Uint8Array) return "[]uint8";
  if (plain instanceof Callable) return "func() string";
  if (isMap(plain)) return "map[string]interface {}";
  if (isList(plain)) return plain.every((item) => typeof item === "string") ? "[]string" : "[]interface {}";
  return kindOf(plain);
}
