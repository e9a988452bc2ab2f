/** Text by its octets in UTF-8: that is how both languages count and cut it. */
import { isAscii } from "./values.ts";

export function octetLength(text: string): number {
  return isAscii(text) ? text.length : Buffer.byteLength(text);
}

/** `[from, to)` in octets; what is cut in the middle of a character loses it. */
export function sliceOctets(text: string, from: number, to: number): string {
  if (isAscii(text)) return text.slice(from, to);
  return Buffer.from(text).subarray(from, to).toString("utf8");
}

/** Where `part` begins, in octets; -1 where it is not. */
export function octetIndexOf(text: string, part: string, last: boolean): number {
  const at = last ? text.lastIndexOf(part) : text.indexOf(part);
  return at <= 0 ? at : octetLength(text.slice(0, at));
}

/** Code points, as the expression language counts the length of a string. */
export function codePointCount(text: string): number {
  if (isAscii(text)) return text.length;
  let count = 0;
  for (const _character of text) count++;
  return count;
}
