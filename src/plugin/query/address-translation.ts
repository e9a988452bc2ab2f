/** What `dns64` and `siit` have in common: records of one address family made from those of the other. */
import { RecordType, type ResourceRecord, RRSIG } from "../../dns/index.ts";
import type { Reply } from "./reply.ts";

/** TTL in seconds of an address without an SOA record (RFC 6147 section 5.1.7), and of an alias to a reverse name. */
export const LONGEST_TTL = 600;

/** Makes the record of one family from that of the other. */
export interface AddressTranslator {
  /** Type of the records that are replaced. */
  readonly replaced: number;
  /** @returns `undefined` for an address without a counterpart, whose record is left out */
  translate(record: ResourceRecord, longestTtl: number): ResourceRecord | undefined;
}

export interface TranslatedAnswer {
  readonly answer: readonly ResourceRecord[];
  /** Records that were made. */
  readonly count: number;
}

/** Replaces addresses and drops their signatures, which prove nothing any more. All other records stay. */
export function translateAnswer(
  records: readonly ResourceRecord[],
  translator: AddressTranslator,
  longestTtl: number,
): TranslatedAnswer {
  const { replaced } = translator;
  const answer: ResourceRecord[] = [];
  let count = 0;
  for (const record of records) {
    if (record.type === replaced) {
      const made = translator.translate(record, longestTtl);
      if (made === undefined) continue;
      answer.push(made);
      count++;
    } else if (!(RRSIG.is(record) && record.data.typeCovered === replaced)) answer.push(record);
  }
  return { answer, count };
}

export function answersWith({ sections: encoded }: Reply, type: number): boolean {
  for (let index = 0; index < encoded.answerCount; index++) if (encoded.typeAt(index) === type) return true;
  return false;
}

/** How long the lack of addresses may be cached, from the first SOA record of a denial; seconds. */
export function ttlOfDenial(reply: Reply): number {
  const { sections: encoded } = reply;
  const end = encoded.answerCount + encoded.authorityCount;
  for (let index = encoded.answerCount; index < end; index++) {
    if (encoded.typeAt(index) !== RecordType.SOA) continue;
    return reply.uniformTtl >= 0 ? reply.uniformTtl : encoded.ttlAt(index);
  }
  return LONGEST_TTL;
}
