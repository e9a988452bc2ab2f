/** The EDNS options of a query: whether other queries may share its answer. */
import { decodeClientSubnet, EdnsOptionCode, findOption, OPT_FIXED_OCTETS } from "../../dns/edns.ts";
import { Rcode } from "../../dns/numbers.ts";
import { readU16 } from "../../dns/octets.ts";
import type { Reply } from "../../plugin/index.ts";
import type { Asked } from "../../plugin/message/asked.ts";

/** Options that do not change answers, whatever they hold. */
const HARMLESS: readonly number[] = [
  EdnsOptionCode.NSID,
  EdnsOptionCode.COOKIE,
  EdnsOptionCode.TCP_KEEPALIVE,
  EdnsOptionCode.PADDING,
];

/** Whether a query asks for an answer for a client subnet (RFC 7871), which then serves that subnet alone. */
export function namesClientSubnet(query: Asked): boolean {
  return (
    hasOptions(query) && findOption(query.edns?.options ?? [], EdnsOptionCode.CLIENT_SUBNET) !== undefined
  );
}

/** Whether an answer holds only for the subnet named in its query (RFC 7871 section 7.3.1). */
export function isTailored(reply: Reply): boolean {
  const option = findOption(reply.edns?.options ?? [], EdnsOptionCode.CLIENT_SUBNET);
  if (option === undefined) return false;
  const subnet = decodeClientSubnet(option.data);
  return subnet === undefined || subnet.scopePrefixLength > 0;
}

/** Whether an error may be caused by the options of the query, and not by its question. */
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
