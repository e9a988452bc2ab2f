/** Differences that docs/compatibility.md lists: a comparison of CoreDNS with this program finds them, and they are intended. */
import type { Message } from "../../dns/message.ts";
import { Rcode } from "../../dns/numbers.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { ServerReply } from "./asking.ts";
import type { AskedQuestion } from "./questions.ts";

export interface ListedDifference {
  /** A part of the sentence in docs/compatibility.md, with its words. */
  readonly sentence: string;
  readonly applies: (question: AskedQuestion, old: Message, now: Message) => boolean;
}

const isEmpty = ({ rcode, answer }: Message): boolean => rcode === Rcode.NOERROR && answer.length === 0;
const isDenied = ({ rcode }: Message): boolean => rcode === Rcode.NXDOMAIN;
const isReverse = ({ name }: AskedQuestion): boolean => /\.(?:in-addr|ip6)\.arpa\.$/.test(`${name}`);

export const LISTED: readonly ListedDifference[] = [
  {
    sentence: "Complete reverse names that exist get an empty answer for types other than PTR",
    applies: (question, old, now) =>
      isReverse(question) && question.type !== RecordType.PTR && isDenied(old) && isEmpty(now),
  },
  {
    sentence: "The names between a reverse zone and an address of the cluster",
    applies: (question, old, now) =>
      isReverse(question) && question.type === RecordType.PTR && isDenied(old) && isEmpty(now),
  },
  {
    sentence: "A query for `dns-version` with a type other than TXT gets an empty answer",
    applies: ({ name, type }, old, now) =>
      `${name}`.startsWith("dns-version.") && type !== RecordType.TXT && isDenied(old) && isEmpty(now),
  },
  {
    sentence: "`_tcp.<service>...` gets an empty answer if the Service has a named port of that protocol",
    applies: ({ name }, old, now) => /^_(?:tcp|udp|sctp)\./.test(`${name}`) && isDenied(old) && isEmpty(now),
  },
  {
    sentence: "`_._tcp.<service>...` gets NXDOMAIN, because no port has an empty name",
    applies: ({ name }, old, now) =>
      `${name}`.startsWith("_._") && old.rcode === Rcode.NOERROR && isDenied(now),
  },
  {
    sentence: "SOA at a name that does not exist gets NXDOMAIN, not an empty answer",
    applies: ({ type }, old, now) => type === RecordType.SOA && isEmpty(old) && isDenied(now),
  },
  {
    sentence: "TXT at the name of a zone or namespace gets NODATA",
    applies: ({ type }, old, now) => type === RecordType.TXT && isDenied(old) && isEmpty(now),
  },
  {
    sentence: "An ExternalName Service is an alias for every query type",
    applies: ({ type }, old, now) =>
      ![RecordType.A, RecordType.AAAA, RecordType.CNAME].some((usual) => usual === type) &&
      isEmpty(old) &&
      now.answer[0]?.type === RecordType.CNAME,
  },
  {
    sentence: "If an upstream fails to answer for the target of an alias, the answer is SERVFAIL",
    applies: (_, old, now) =>
      now.rcode === Rcode.SERVFAIL &&
      old.answer.length > 0 &&
      old.answer.every(({ type }) => type === RecordType.CNAME),
  },
  {
    sentence: "With `bind`, NS records have the addresses that the server is bound to, except loopback",
    applies: ({ type }, old, now) =>
      type === RecordType.NS && old.rcode === now.rcode && old.additional.length === 0,
  },
  {
    sentence: "ANY is answered with one RRset (RFC 8482 section 4.1)",
    applies: ({ type }, old, now) => type === RecordType.ANY && isEmpty(old) && now.answer.length > 0,
  },
];

/** @returns the sentence, or `undefined` for a difference that is not listed */
export function listedSentence(
  question: AskedQuestion,
  old: ServerReply,
  now: ServerReply,
): string | undefined {
  return LISTED.find(({ applies }) => applies(question, old.message, now.message))?.sentence;
}
