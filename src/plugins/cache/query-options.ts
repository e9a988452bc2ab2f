/** The EDNS options of a query: what they mean for who else may get its answer. */
import { decodeClientSubnet, EdnsOptionCode, findOption, OPT_FIXED_OCTETS } from "../../dns/edns.ts";
import { Rcode } from "../../dns/numbers.ts";
import { readU16 } from "../../dns/octets.ts";
import type { Reply } from "../../plugin/index.ts";
import type { Asked } from "../../plugin/message/asked.ts";

/** Options that every server answers alike, whatever they hold. */
const HARMLESS: readonly number[] = [
  EdnsOptionCode.NSID,
  EdnsOptionCode.COOKIE,
  EdnsOptionCode.TCP_KEEPALIVE,
  EdnsOptionCode.PADDING,
];

/** Whether a query says for which network its answer is to be (RFC 7871): then it is for that network alone. */
export function namesClientSubnet(query: Asked): boolean {
  return (
    hasOptions(query) && findOption(query.edns?.options ?? [], EdnsOptionCode.CLIENT_SUBNET) !== undefined
  );
}

/** Whether an answer holds for the network that its query named, and not for everybody (RFC 7871 section 7.3.1). */
export function isTailored(reply: Reply): boolean {
  const option = findOption(reply.edns?.options ?? [], EdnsOptionCode.CLIENT_SUBNET);
  if (option === undefined) return false;
  const subnet = decodeClientSubnet(option.data);
  return subnet === undefined || subnet.scopePrefixLength > 0;
}

/** Whether an error may be about the options that a query came with, and not about its question. */
export function mayBeAboutOptions(query: Asked): boolean {
  return hasOptions(query) && query.edns?.options.some(({ code }) => !HARMLESS.includes(code)) === true;
}

/** Whether one query may get an error because of its OPT record, and the other not. */
export function mayFailApart(reply: Reply, one: Asked, other: Asked): boolean {
  if (reply.rcode === Rcode.NOERROR || reply.rcode === Rcode.NXDOMAIN) return false;
  return one.hasEdns !== other.hasEdns || !sameOptions(one, other);
}

function sameOptions(one: Asked, other: Asked): boolean {
  const length = optionsLength(one);
  if (length !== optionsLength(other)) return false;
  for (let at = 0; at < length; at++)
    if (one.bytes[optionsStart(one) + at] !== other.bytes[optionsStart(other) + at]) return false;
  return true;
}

function hasOptions(query: Asked): boolean {
  return optionsLength(query) > 0;
}

/** Octets. */
function optionsLength(query: Asked): number {
  return query.hasEdns ? readU16(query.bytes, optionsStart(query) - 2) : 0;
}

function optionsStart({ optOffset }: Asked): number {
  // The root name in front of the type is an octet of OPT, too.
  return optOffset - 1 + OPT_FIXED_OCTETS;
}
