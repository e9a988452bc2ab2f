/** Reading values of unknown shape, as they come out of JSON and YAML. Nothing here throws. */

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The member `key` of an object; undefined where there is no object or no such member of its own. */
export function member(value: unknown, key: string): unknown {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

/** The member `key` if it is text, else the empty text. */
export function textMember(value: unknown, key: string): string {
  const found = member(value, key);
  return typeof found === "string" ? found : "";
}

/** The member `key` if it is a list, else the empty list. */
export function listMember(value: unknown, key: string): readonly unknown[] {
  const found = member(value, key);
  return Array.isArray(found) ? found : [];
}

/** The members of the member `key` that are text. */
export function textEntries(value: unknown, key: string): [key: string, value: string][] {
  const found = member(value, key);
  if (!isObject(found)) return [];
  return Object.entries(found).filter((entry): entry is [string, string] => typeof entry[1] === "string");
}
