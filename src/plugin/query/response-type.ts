/**
 * The kind of answer that a reply is (docs/spec/coredns-behaviour.md#kinds-of-replies): cache, log, minimal and
 * others depend on it.
 */
import type { EncodedSections } from "../../dns/encoded-sections.ts";
import { Opcode, Rcode } from "../../dns/numbers.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { RRSIG } from "../../dns/record-table.ts";
import { RecordType } from "../../dns/type-names.ts";
import { WireError } from "../../dns/wire-reader.ts";
import type { Reply } from "./reply.ts";

export type ResponseType =
  | "NOERROR"
  | "NXDOMAIN"
  | "NODATA"
  | "DELEGATION"
  | "SERVERERROR"
  | "OTHERERROR"
  | "META"
  | "UPDATE";

export type ResponseClass = "success" | "denial" | "error";

/**
 * The type of a reply.
 * @param wallTime milliseconds since 1970, for the validity of signatures
 */
export function responseType(reply: Reply, wallTime: number): ResponseType {
  const { query, rcode } = reply;
  if (query.opcode === Opcode.UPDATE) return "UPDATE";
  if (query.opcode === Opcode.NOTIFY || query.type === RecordType.AXFR || query.type === RecordType.IXFR)
    return "META";
  const sections = reply.sections;
  if (query.dnssecOk && hasExpiredSignature(sections, wallTime)) return "OTHERERROR";
  if (sections.answerCount > 0 && rcode === Rcode.NOERROR) return "NOERROR";
  if (sections.answerCount > 0 && rcode === Rcode.NXDOMAIN) return "OTHERERROR";
  if (rcode === Rcode.NOERROR && authorityHolds(sections, RecordType.SOA)) return "NODATA";
  if (rcode === Rcode.NXDOMAIN) return "NXDOMAIN";
  if (rcode === Rcode.SERVFAIL || rcode === Rcode.NOTIMP) return "SERVERERROR";
  if (rcode === Rcode.NOERROR) return authorityHolds(sections, RecordType.NS) ? "DELEGATION" : "NOERROR";
  return "OTHERERROR";
}

export function responseClass(type: ResponseType): ResponseClass {
  if (type === "NOERROR" || type === "DELEGATION") return "success";
  return type === "NXDOMAIN" || type === "NODATA" ? "denial" : "error";
}

/** TTL of a whole message in seconds: 5 for errors and for messages without records, else the smallest one. */
export function minimalTtl(reply: Reply, type: ResponseType, ceiling = 3600): number {
  const sections = reply.sections;
  if (sections.count === 0 || (type !== "NOERROR" && type !== "NXDOMAIN" && type !== "NODATA")) return 5;
  return sections.minimalTtl(ceiling);
}

export function authorityHolds(sections: EncodedSections, type: number): boolean {
  const end = sections.answerCount + sections.authorityCount;
  for (let index = sections.answerCount; index < end; index++)
    if (sections.typeAt(index) === type) return true;
  return false;
}

/**
 * Whether a signature is outside its validity period, or cannot be read. Uses serial arithmetic (RFC 4034 section
 * 3.1.5): the two times of a signature wrap around.
 */
function hasExpiredSignature(sections: EncodedSections, wallTime: number): boolean {
  const now = Math.floor(wallTime / 1000) >>> 0;
  for (let index = 0; index < sections.count; index++) {
    if (sections.typeAt(index) !== RecordType.RRSIG) continue;
    const record = tryRecord(sections, index);
    if (record === undefined || !RRSIG.is(record)) return true;
    if (((record.data.expiration - now) | 0) < 0 || ((now - record.data.inception) | 0) < 0) return true;
  }
  return false;
}

function tryRecord(sections: EncodedSections, index: number): ResourceRecord | undefined {
  try {
    return sections.recordAt(index);
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
}
