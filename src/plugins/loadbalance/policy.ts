import { type EncodedSections, RecordType, type ResourceRecord } from "../../dns/index.ts";
import type { Reply } from "../../plugin/index.ts";

/** A way to put addresses in order. */
export interface BalancePolicy {
  /** Leaves records undecoded where it can. */
  balance(reply: Reply): void;
  /** The same, on records and at once, for who goes on to work on them. */
  balanceRecords(reply: Reply): void;
}

export function isAddressType(type: number): boolean {
  return type === RecordType.A || type === RecordType.AAAA;
}

/** How many address records there are, in all sections. */
export function addressCount(sections: EncodedSections): number {
  let count = 0;
  for (let index = 0; index < sections.count; index++) if (isAddressType(sections.typeAt(index))) count++;
  return count;
}

/** Records of one section by what the policies make of them, each list in the order of the section. */
export interface SortedRecords {
  readonly aliases: readonly ResourceRecord[];
  readonly addresses: readonly ResourceRecord[];
  readonly mail: readonly ResourceRecord[];
  readonly others: readonly ResourceRecord[];
}

export function sortRecords(section: readonly ResourceRecord[]): SortedRecords {
  const aliases: ResourceRecord[] = [];
  const addresses: ResourceRecord[] = [];
  const mail: ResourceRecord[] = [];
  const others: ResourceRecord[] = [];
  for (const record of section) {
    if (record.type === RecordType.CNAME) aliases.push(record);
    else if (isAddressType(record.type)) addresses.push(record);
    else if (record.type === RecordType.MX) mail.push(record);
    else others.push(record);
  }
  return { aliases, addresses, mail, others };
}
