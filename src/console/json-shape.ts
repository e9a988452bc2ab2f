/** Checks JSON from elsewhere against a schema of the API. Unknown members are accepted. */
import { isObject } from "../kubernetes/objects/json.ts";
import type { Schema } from "./api-schema.ts";

export function hasShape(schema: Schema, value: unknown): boolean {
  if (schema.anyOf !== undefined) return schema.anyOf.some((each) => hasShape(each, value));
  if (schema.enum !== undefined) return schema.enum.some((word) => word === value);
  switch (schema.type) {
    case "array": {
      const { items = {} } = schema;
      return Array.isArray(value) && value.every((each) => hasShape(items, each));
    }
    case "object":
      return isObject(value) && hasMembers(schema, value);
    case "integer":
      return Number.isInteger(value);
    case "number":
      return Number.isFinite(value);
    case "null":
      return value === null;
    case undefined:
      return true;
    default:
      return typeof value === schema.type;
  }
}

function hasMembers(
  { properties = {}, required = [], additionalProperties }: Schema,
  value: Readonly<Record<string, unknown>>,
): boolean {
  if (required.some((name) => !Object.hasOwn(value, name))) return false;
  return Object.entries(value).every(([name, each]) => {
    const schema = Object.hasOwn(properties, name) ? properties[name] : additionalProperties;
    return typeof schema !== "object" || hasShape(schema, each);
  });
}
