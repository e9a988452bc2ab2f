/** Text by its octets in UTF-8, by which both languages count and slice it. */
import { isAscii } from "./values.ts";

export function octetLength(text: string): number {
  return isAscii(text) ? text.length : Buffer.byteLength(text);
}

/** `[from, to)` in octets; a character that is cut in the middle is dropped. */
export function sliceOctets(text: string, from: number, to: number): string {
  if (isAscii(text)) return text.slice(from, to);
  return Buffer.from(text).subarray(from, to).toString("utf8");
}

/** Offset of `part` in octets; -1 if it does not occur. */
export function octetIndexOf(text: string, part: string, last: boolean): number {
  const at = last ? text.lastIndexOf(part) : text.indexOf(part);
  return at <= 0 ? at : octetLength(text.slice(0, at));
}

/** Code points, by which the expression language counts the length of a string. */
export function codePointCount(text: string): number {
  if (isAscii(text)) return text.length;
  let count = 0;
  for (const _character of text) count++;
  return count;
}
