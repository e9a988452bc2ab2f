/** Reads request bodies: JSON objects with string members. */
import { RequestError } from "./request-error.ts";

export type Members = Readonly<Record<string, unknown>>;

/**
 * @param known the allowed members
 * @throws RequestError
 */
export function readObject(body: string, known: readonly string[]): Members {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw badRequest("the body is not valid JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw badRequest("the body is not a JSON object");
  for (const member of Object.keys(value))
    if (!known.includes(member))
      throw badRequest(`unknown member "${member.slice(0, 40)}": ${known.join(", ")}`);
  return { ...value };
}

/** A name may have 255 octets, each written as \DDD. */
const MAX_TEXT = 1_024;

/** @throws RequestError */
export function optionalText(members: Members, name: string): string | undefined {
  const value = members[name];
  if (value === undefined) return undefined;
  if (typeof value !== "string" || value.length > MAX_TEXT) throw badRequest(`"${name}" is a short text`);
  return value;
}

/** The only member of a body. @throws RequestError */
export function textMember(body: string, name: string): string {
  const value = optionalText(readObject(body, [name]), name);
  if (value === undefined) throw badRequest(`"${name}" is missing`);
  return value;
}

export function badRequest(message: string): RequestError {
  return new RequestError(400, message);
}
