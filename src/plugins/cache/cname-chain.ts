/** Checks whether an answer section leads from the question's name to records of its type. */
import type { EncodedSections } from "../../dns/encoded-sections.ts";
import type { Name } from "../../dns/name.ts";
import { readU16 } from "../../dns/octets.ts";
import { RecordType } from "../../dns/type-names.ts";
import { WireError, WireReader } from "../../dns/wire-reader.ts";
import type { Query } from "../../plugin/index.ts";

/**
 * Returns true when the question's own name, or the end of its chain of CNAMEs, has records of the type asked for.
 * Returns false for a chain that breaks off, loops, or forks. The order of the records does not matter.
 */
export function reachesType(sections: EncodedSections, question: Query): boolean {
  if (question.type === RecordType.ANY) return sections.answerCount > 0;
  if (isPlainRRset(sections, question.type)) return true;
  try {
    return followChain(sections, question.name, question.type);
  } catch (error) {
    if (error instanceof WireError) return false;
    throw error;
  }
}

/** The usual answer: all records have the type asked for, and their owner is a pointer to the question. */
function isPlainRRset(
  { bytes, recordStarts, typeOffsets, answerCount }: EncodedSections,
  type: number,
): boolean {
  for (let index = 0; index < answerCount; index++) {
    if (readU16(bytes, typeOffsets[index] ?? 0) !== type) return false;
    if (readU16(bytes, recordStarts[index] ?? 0) !== POINTER_TO_QUESTION) return false;
  }
  return answerCount > 0;
}

const POINTER_TO_QUESTION = 0xc00c;

function followChain(sections: EncodedSections, start: Name, type: number): boolean {
  // Indexed once by text: comparing each record with each other would let a reply of 64 KiB take seconds.
  const owners = new Set<string>();
  const targets = new Map<string, string>();
  const forks = new Set<string>();
  for (let index = 0; index < sections.answerCount; index++) {
    const recordType = sections.typeAt(index);
    if (recordType !== type && recordType !== RecordType.CNAME) continue;
    const owner = key(sections.ownerAt(index));
    if (recordType === type) {
      owners.add(owner);
      continue;
    }
    const target = key(targetAt(sections, index));
    const known = targets.get(owner);
    if (known !== undefined && known !== target) forks.add(owner);
    targets.set(owner, target);
  }
  let at: string | undefined = key(start);
  while (at !== undefined) {
    if (owners.has(at)) return true;
    if (forks.has(at)) return false;
    const target = targets.get(at);
    // Each name is followed once, so loops end here.
    targets.delete(at);
    at = target;
  }
  return false;
}

/** The RDATA of a CNAME is one name. */
function targetAt(sections: EncodedSections, index: number): Name {
  return new WireReader(
    sections.bytes,
    (sections.typeOffsets[index] ?? 0) + RDATA_OFFSET,
    sections.end,
  ).name();
}

/** Type, class, TTL and length stand between owner and RDATA. */
const RDATA_OFFSET = 10;

function key(name: Name): string {
  return name.toLowerCase().toString();
}
