/**
 * Encodes header blocks of responses (HPACK, RFC 7541) with only the static table. The first block of a connection has to begin
 * with {@link NO_TABLE}, whatever table size the client allows.
 */
import { pushInteger } from "../prefixed-integer.ts";
import { STATIC_TABLE } from "./hpack-fields.ts";

/** Sets the size of the dynamic table to 0, for the whole connection (RFC 7541 section 6.3). */
export const NO_TABLE = 0x20;

/** @param fields lower-case names, `:status` first */
export function encodeFields(
  fields: readonly (readonly [name: string, value: string | number])[],
): Uint8Array {
  const out: number[] = [];
  for (const [name, value] of fields) {
    const text = String(value);
    const whole = STATIC_TABLE.findIndex((entry) => entry[0] === name && entry[1] === text && text !== "");
    if (whole >= 0) {
      out.push(0x80 | (whole + 1));
      continue;
    }
    const named = STATIC_TABLE.findIndex((entry) => entry[0] === name);
    // A literal without indexing.
    pushInteger(out, 0, 4, named + 1);
    if (named < 0) pushText(out, name);
    pushText(out, text);
  }
  return Uint8Array.from(out);
}

function pushText(out: number[], text: string): void {
  pushInteger(out, 0, 7, text.length);
  out.push(...Buffer.from(text, "latin1"));
}

/** Decimal digits of a number. */
export function digitsOf(value: number): number {
  let digits = 1;
  for (let rest = value; rest >= 10; rest = Math.floor(rest / 10)) digits++;
  return digits;
}

/** Writes a number in decimal. @returns its end */
export function writeDigits(out: Uint8Array, at: number, value: number, digits: number): number {
  let rest = value;
  for (let place = at + digits - 1; place >= at; place--) {
    const whole = Math.floor(rest / 10);
    out[place] = 0x30 + rest - whole * 10;
    rest = whole;
  }
  return at + digits;
}
