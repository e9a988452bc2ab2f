import { type EncodedSections, RecordType, type ResourceRecord } from "../../dns/index.ts";
import type { Random, Reply } from "../../plugin/index.ts";
import { type BalancePolicy, isAddressType, sortRecords } from "./policy.ts";

/** Shuffles addresses and mail exchangers, and puts them after aliases and all other records. */
export class RoundRobin implements BalancePolicy {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  balance(reply: Reply): void {
    const { sections: encoded } = reply;
    // Most answers have one record, and reading it would be a cache miss.
    if (encoded.count < 2) return;
    const addresses = addressesToShuffle(encoded);
    // The writer of the reply shuffles addresses of one owner, so that no record is decoded.
    if (addresses > 1) reply.shuffle = 1 + Math.floor(this.#random.fraction() * LARGEST_SEED);
    else if (addresses === NEEDS_RECORDS) this.balanceRecords(reply);
  }

  balanceRecords(reply: Reply): void {
    reply.replaceRecords({
      answer: this.#reorder(reply.answer),
      authority: this.#reorder(reply.authority),
      additional: this.#reorder(reply.additional),
    });
  }

  #reorder(section: readonly ResourceRecord[]): readonly ResourceRecord[] {
    if (section.length < 2) return section;
    const { aliases, others, addresses, mail } = sortRecords(section);
    return [...aliases, ...others, ...this.#shuffled(addresses), ...this.#shuffled(mail)];
  }

  /** A Fisher-Yates shuffle: every order is equally likely. */
  #shuffled(records: readonly ResourceRecord[]): ResourceRecord[] {
    const shuffled = [...records];
    for (let last = shuffled.length - 1; last > 0; last--) {
      const other = Math.floor(this.#random.fraction() * (last + 1));
      const [one, two] = [shuffled[last], shuffled[other]];
      if (one === undefined || two === undefined) continue;
      shuffled[last] = two;
      shuffled[other] = one;
    }
    return shuffled;
  }
}

/** Small enough for a number that needs no heap object. */
const LARGEST_SEED = 0x3fff_fffe;

const NEEDS_RECORDS = -1;

/**
 * How many addresses may be shuffled within the encoded reply; -1 if the records have to be sorted first, or there
 * are mail exchangers. Signatures may be anywhere: they belong to the set before them.
 */
function addressesToShuffle(sections: EncodedSections): number {
  const { answerCount, count } = sections;
  const authorityEnd = answerCount + sections.authorityCount;
  let addresses = 0;
  let rank = 0;
  let mail = 0;
  for (let index = 0; index < count; index++) {
    if (index === answerCount || index === authorityEnd) {
      rank = 0;
      mail = 0;
    }
    const type = sections.typeAt(index);
    if (type === RecordType.RRSIG) continue;
    const next = rankOf(type);
    if (next < rank) return NEEDS_RECORDS;
    rank = next;
    if (next === ADDRESS_RANK) addresses++;
    else if (next === MAIL_RANK && ++mail > 1) return NEEDS_RECORDS;
  }
  return addresses;
}

const ALIAS_RANK = 0;
const OTHER_RANK = 1;
const ADDRESS_RANK = 2;
const MAIL_RANK = 3;

function rankOf(type: number): number {
  if (isAddressType(type)) return ADDRESS_RANK;
  if (type === RecordType.CNAME) return ALIAS_RANK;
  return type === RecordType.MX ? MAIL_RANK : OTHER_RANK;
}
