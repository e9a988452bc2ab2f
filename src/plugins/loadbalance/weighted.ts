import { A, AAAA, RecordType, type ResourceRecord } from "../../dns/index.ts";
import type { Random, Reply } from "../../plugin/index.ts";
import { addressCount, type BalancePolicy, isAddressType } from "./policy.ts";
import { DEFAULT_WEIGHT, type WeightFile } from "./weight-file.ts";

/** Puts one address first, drawn by weight; the others keep their order. */
export class Weighted implements BalancePolicy {
  readonly #weights: WeightFile;
  readonly #random: Random;

  constructor(weights: WeightFile, random: Random) {
    this.#weights = weights;
    this.#random = random;
  }

  balance(reply: Reply): void {
    if (addressCount(reply.sections) > 1) this.balanceRecords(reply);
  }

  balanceRecords(reply: Reply): void {
    const { type } = reply.query;
    if (!isAddressType(type) && type !== RecordType.SRV) return;
    reply.replaceRecords({
      answer: this.#reorder(reply.answer),
      additional: this.#reorder(reply.additional),
    });
  }

  #reorder(section: readonly ResourceRecord[]): readonly ResourceRecord[] {
    const first = section.findIndex((record) => isAddressType(record.type));
    if (first < 0) return section;
    const drawn = this.#draw(section);
    const [one, two] = [section[first], section[drawn]];
    if (drawn === first || one === undefined || two === undefined) return section;
    const reordered = [...section];
    reordered[first] = two;
    reordered[drawn] = one;
    return reordered;
  }

  /** Index of a random address, drawn in proportion to the weights; -1 without addresses. */
  #draw(section: readonly ResourceRecord[]): number {
    let sum = 0;
    for (const record of section) sum += this.#weightOf(record);
    let left = this.#random.fraction() * sum;
    let last = -1;
    for (const [index, record] of section.entries()) {
      const weight = this.#weightOf(record);
      if (weight === 0) continue;
      last = index;
      left -= weight;
      if (left < 0) break;
    }
    return last;
  }

  /** 0 for other records than addresses. */
  #weightOf(record: ResourceRecord): number {
    if (!A.is(record) && !AAAA.is(record)) return 0;
    return this.#weights.weights.of(record.name)?.get(record.data.address) ?? DEFAULT_WEIGHT;
  }
}
