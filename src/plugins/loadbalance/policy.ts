import { type EncodedSections, RecordType, type ResourceRecord } from "../../dns/index.ts";
import type { Reply } from "../../plugin/index.ts";

/** A way to order addresses. */
export interface BalancePolicy {
  /** Leaves records undecoded where possible. */
  balance(reply: Reply): void;
  /** The same on decoded records, immediately, for a caller that continues to change them. */
  balanceRecords(reply: Reply): void;
}

export function isAddressType(type: number): boolean {
  return type === RecordType.A || type === RecordType.AAAA;
}

/** Number of address records in all sections. */
export function addressCount(sections: EncodedSections): number {
  let count = 0;
  for (let index = 0; index < sections.count; index++) if (isAddressType(sections.typeAt(index))) count++;
  return count;
}

/** Records of one section grouped for the policies, each list in the order of the section. */
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
