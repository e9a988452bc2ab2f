/** The type of a value, as far as it is known before the expression is run. */
import { Callable, type ExpressionValue, Float, isInteger, isList, isMap } from "./values.ts";

export type TypeKind =
  | "unknown"
  | "nil"
  | "bool"
  | "int"
  | "float"
  | "string"
  | "bytes"
  | "array"
  | "map"
  | "function";

export interface Type {
  readonly kind: TypeKind;
  /** For arrays: the type of all elements. */
  readonly element?: Type;
}

export const UNKNOWN: Type = { kind: "unknown" };
export const NIL: Type = { kind: "nil" };
export const BOOL: Type = { kind: "bool" };
export const INT: Type = { kind: "int" };
export const FLOAT: Type = { kind: "float" };
export const STRING: Type = { kind: "string" };
export const BYTES: Type = { kind: "bytes" };
export const MAP: Type = { kind: "map" };
export const FUNCTION: Type = { kind: "function" };
export const ARRAY: Type = { kind: "array", element: UNKNOWN };

export function arrayOf(element: Type): Type {
  return { kind: "array", element };
}

export function elementOf({ kind, element }: Type): Type {
  return kind === "array" ? (element ?? UNKNOWN) : UNKNOWN;
}

export function isNumeric({ kind }: Type): boolean {
  return kind === "int" || kind === "float";
}

export function isText({ kind }: Type): boolean {
  return kind === "string";
}

/** True if `accepts` may be true of both types. */
export function bothMayBe(left: Type, right: Type, accepts: (type: Type) => boolean): boolean {
  const mayBe = (type: Type) => type.kind === "unknown" || accepts(type);
  return mayBe(left) && mayBe(right);
}

/** True if `==` may ever be true. */
export function areComparable(left: Type, right: Type): boolean {
  if (left.kind === right.kind) return true;
  if ([left.kind, right.kind].some((kind) => kind === "nil" || kind === "unknown")) return true;
  return isNumeric(left) && isNumeric(right);
}

/** The common type of a condition's branches. */
export function commonType(one: Type, other: Type): Type {
  if (one.kind === other.kind) {
    if (one.kind !== "array") return one;
    return elementOf(one).kind === elementOf(other).kind ? one : ARRAY;
  }
  if (one.kind === "nil") return other;
  return other.kind === "nil" ? one : UNKNOWN;
}

/** As in messages. */
export function typeText({ kind }: Type): string {
  return kind;
}

export function typeOf(value: ExpressionValue): Type {
  if (value === null) return NIL;
  if (isInteger(value)) return INT;
  if (typeof value === "boolean") return BOOL;
  if (typeof value === "string") return STRING;
  if (value instanceof Float) return FLOAT;
  if (value instanceof Uint8Array) return BYTES;
  if (value instanceof Callable) return FUNCTION;
  if (isMap(value)) return MAP;
  return isList(value) ? ARRAY : UNKNOWN;
}
