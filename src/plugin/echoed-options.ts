/** EDNS options of the client that are sent back when the reply has no OPT of its own (CoreDNS facts 1.15). */
import { type EdnsOption, EdnsOptionCode } from "../dns/edns.ts";
import { readU16 } from "../dns/octets.ts";
import type { Asked } from "./asked.ts";

/** What CoreDNS sends back on every listener. */
export const ECHOED_OPTIONS: ReadonlySet<number> = new Set([
  EdnsOptionCode.NSID,
  EdnsOptionCode.EXPIRE,
  EdnsOptionCode.COOKIE,
  EdnsOptionCode.TCP_KEEPALIVE,
  EdnsOptionCode.PADDING,
]);

const NONE: readonly EdnsOption[] = [];

export function echoedOptions(query: Asked): readonly EdnsOption[] {
  if (!query.hasEdns || readU16(query.bytes, query.optOffset + 8) === 0) return NONE;
  return (query.edns?.options ?? NONE).filter((option) => query.echoedOptions.has(option.code));
}

/** Octets that options take on the wire. */
export function optionsLength(options: readonly EdnsOption[]): number {
  let length = 0;
  for (const option of options) length += 4 + option.data.length;
  return length;
}
