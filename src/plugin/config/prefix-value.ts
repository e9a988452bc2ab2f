/** Prefixes that embed IPv4 addresses in IPv6 addresses (RFC 6052). */
import { type Value, ValueProblem } from "./values.ts";

/** RFC 6052 section 2.1. */
const WELL_KNOWN = "64:ff9b::/96";

export interface PrefixValue<T> extends Value<T> {
  /** The prefix that counts if none is given. */
  wellKnown(): T;
}

/** @param parse returns the fault as text */
export function prefixValue<T extends object>(
  expected: string,
  parse: (word: string) => T | string,
): PrefixValue<T> {
  return {
    expected,
    parse(word) {
      const read = parse(word);
      return typeof read === "string" ? new ValueProblem(read) : read;
    },
    wellKnown() {
      const read = parse(WELL_KNOWN);
      if (typeof read === "string") throw new RangeError(read);
      return read;
    },
  };
}
