/**
 * Pads replies on encrypted transports, so that their length reveals little (RFC 7830). Clients that send padding get
 * replies of a multiple of 468 octets (RFC 8467 section 4.1).
 */
import { EdnsOptionCode } from "../../dns/edns.ts";
import { readU16, writeU16 } from "../../dns/octets.ts";
import type { Query } from "../../plugin/query/query.ts";

export const PADDING_BLOCK = 468;
const OPTION_HEAD = 4;
/** From OPT's first octet to the length of its options. */
const OPTIONS_LENGTH_AT = 9;

/**
 * Whether the client sent padding over an encrypted transport. On plain ones padding would only make replies longer.
 */
export function isPadded(query: Query): boolean {
  const { transport } = query;
  if (transport === "udp" || transport === "tcp" || !query.hasEdns) return false;
  for (const { code } of query.edns?.options ?? []) if (code === EdnsOptionCode.PADDING) return true;
  return false;
}

/**
 * Adds the option behind the others of OPT, which ends the message.
 * @param opt where OPT begins
 * @param length of the message without padding
 * @param limit octets that the message may have
 * @returns the new length; the old one if the option does not fit
 */
export function writePadding(out: Uint8Array, opt: number, length: number, limit: number): number {
  const least = length + OPTION_HEAD;
  if (least > limit) return length;
  const padded = Math.min(limit, Math.ceil(least / PADDING_BLOCK) * PADDING_BLOCK);
  writeU16(out, length, EdnsOptionCode.PADDING);
  writeU16(out, length + 2, padded - least);
  out.fill(0, least, padded);
  writeU16(out, opt + OPTIONS_LENGTH_AT, readU16(out, opt + OPTIONS_LENGTH_AT) + padded - length);
  return padded;
}
