/**
 * Compression of names in records that another server encoded (RFC 1035 section 4.1.4): whether it helps, and the shorter octets.
 */
import { EncodedSections } from "./encoded-sections.ts";
import type { Question } from "./message.ts";
import { FOLD, octetAt, readU16 } from "./octets.ts";
import type { ResourceRecord } from "./record-kind.ts";
import { RecordType } from "./type-names.ts";

/** Octets of the smallest record. */
const LEAST_RECORD = 11;
const HEADER_OCTETS = 12;

/** Octets before the names in RDATA that may be compressed (RFC 3597 section 4), and the number of names. */
const COMPRESSIBLE: ReadonlyMap<number, { readonly fixed: number; readonly names: number }> = new Map([
  [RecordType.NS, { fixed: 0, names: 1 }],
  [RecordType.CNAME, { fixed: 0, names: 1 }],
  [RecordType.PTR, { fixed: 0, names: 1 }],
  [RecordType.MX, { fixed: 2, names: 1 }],
  [RecordType.SOA, { fixed: 0, names: 2 }],
]);

/**
 * Whether compression would make the first `records` records shorter. Makes no objects, and is fast for servers that compress: then
 * each uncompressed name ends in another top-level label than the names before it.
 * @param question octets with the name of the question at 12
 */
export function isCompressible(sections: EncodedSections, question: Uint8Array, records: number): boolean {
  const { bytes, end, recordStarts, typeOffsets } = sections;
  let seen = topLevelBit(question, HEADER_OCTETS, question.length);
  for (let index = 0; index < records; index++) {
    const owner = topLevelBit(bytes, recordStarts[index] as number, end);
    if ((seen & owner) !== 0) return true;
    seen |= owner;
    const typeAt = typeOffsets[index] as number;
    const type = readU16(bytes, typeAt);
    if (type === RecordType.A || type === RecordType.AAAA) continue;
    const layout = COMPRESSIBLE.get(type);
    if (layout === undefined) continue;
    let at = typeAt + 10 + layout.fixed;
    for (let name = 0; name < layout.names; name++) {
      const target = topLevelBit(bytes, at, end);
      if ((seen & target) !== 0) return true;
      seen |= target;
      at = endOfName(bytes, at, end);
    }
  }
  return false;
}

/**
 * The records with all names compressed, as many as may fit in `limit` octets.
 * @param question the question to encode them for
 * @param octets the same question as octets
 * @throws WireError if RDATA is malformed
 */
export function compressed(
  sections: EncodedSections,
  question: Question,
  octets: Uint8Array,
  limit: number,
): EncodedSections {
  const source = sections.forQuestion(octets);
  const count = Math.min(source.count, Math.max(0, Math.floor((limit - source.start) / LEAST_RECORD)));
  const records: ResourceRecord[] = [];
  for (let index = 0; index < count; index++) records.push(source.recordAt(index));
  const authorityStart = source.answerCount;
  const authorityEnd = authorityStart + source.authorityCount;
  return EncodedSections.encode(question, {
    answer: records.slice(0, authorityStart),
    authority: records.slice(authorityStart, authorityEnd),
    additional: records.slice(authorityEnd),
  }).encoded;
}

/** One of 32 bits for the last label of an uncompressed name; 0 for the root, and for a name that ends in a pointer. */
function topLevelBit(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  let last = -1;
  while (at < end) {
    const octet = octetAt(bytes, at);
    if (octet >= 0xc0) return 0;
    if (octet === 0) break;
    last = at;
    at += octet + 1;
  }
  if (last < 0) return 0;
  let hash = 0;
  for (let place = last; place < at; place++) hash = (hash * 31 + octetAt(FOLD, octetAt(bytes, place))) | 0;
  // The low bits of short labels differ too little.
  return 1 << ((hash ^ (hash >>> 5) ^ (hash >>> 13)) & 31);
}

function endOfName(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end) {
    const octet = octetAt(bytes, at);
    if (octet === 0) return at + 1;
    if (octet >= 0xc0) return at + 2;
    at += octet + 1;
  }
  return end;
}
