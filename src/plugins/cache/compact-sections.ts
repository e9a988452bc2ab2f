import { EncodedSections } from "../../dns/encoded-sections.ts";
import type { Question } from "../../dns/message.ts";
import { writeU16 } from "../../dns/octets.ts";

/**
 * The same records in memory of their own, when they are a part of something larger: a receive buffer, or an answer of which
 * sections were left out. What stays for an hour must not hold 64 KiB for the sake of 60 octets.
 */
export function compactSections(sections: EncodedSections, question: Question): EncodedSections {
  const { bytes, start, end } = sections;
  if (bytes.length === 0 || bytes.buffer.byteLength <= end + SPARE_OCTETS) return sections;
  const message = new Uint8Array(end);
  writeU16(message, 4, 1);
  writeU16(message, 6, sections.answerCount);
  writeU16(message, 8, sections.authorityCount);
  writeU16(message, 10, sections.additionalCount);
  message.set(question.name.wire, 12);
  writeU16(message, start - 4, question.type);
  writeU16(message, start - 2, question.class);
  message.set(bytes.subarray(start, end), start);
  return EncodedSections.scan(message, end).encoded;
}

/** An OPT record left behind the last one is not worth a copy. */
const SPARE_OCTETS = 64;
