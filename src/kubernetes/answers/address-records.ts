/** A and AAAA records from packed addresses. */
import type { Name } from "../../dns/name.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { A, AAAA } from "../../dns/record-table.ts";
import { RecordType } from "../../dns/type-names.ts";
import { formatIpv4, formatIpv6 } from "../../lib/net/ip-address.ts";
import { type AddressKey, addressKey } from "../objects/addresses.ts";
import type { EndpointReference } from "../store/services/service-endpoints.ts";

/** The octets of an address that records of a type hold; 0 for a type that holds none. */
export function addressLengthOf(type: number): 0 | 4 | 16 {
  if (type === RecordType.A) return 4;
  return type === RecordType.AAAA ? 16 : 0;
}

/** A record for one address; `length` tells the family. */
export function addressRecord(
  owner: Name,
  ttl: number,
  octets: Uint8Array,
  offset: number,
  length: 4 | 16,
): ResourceRecord {
  return length === 4
    ? A.create(owner, ttl, { address: formatIpv4(octets, offset) })
    : AAAA.create(owner, ttl, { address: formatIpv6(octets, offset) });
}

/** Records for addresses that stand side by side. */
export function packedAddressRecords(
  owner: Name,
  ttl: number,
  packed: Uint8Array,
  length: 4 | 16,
): ResourceRecord[] {
  const records: ResourceRecord[] = [];
  for (let at = 0; at < packed.length; at += length)
    records.push(addressRecord(owner, ttl, packed, at, length));
  return records;
}

/** Records for those addresses that have `length` octets. */
export function addressRecords(
  owner: Name,
  ttl: number,
  addresses: readonly Uint8Array[],
  length: 4 | 16,
): ResourceRecord[] {
  const records: ResourceRecord[] = [];
  for (const octets of addresses) {
    if (octets.length === length) records.push(addressRecord(owner, ttl, octets, 0, length));
  }
  return records;
}

/** Records for the addresses of `length` octets among some endpoints, each once. */
export function endpointAddressRecords(
  owner: Name,
  ttl: number,
  endpoints: readonly EndpointReference[],
  length: 4 | 16,
): ResourceRecord[] {
  const records: ResourceRecord[] = [];
  const seen = new Set<AddressKey>();
  for (const { group, index } of endpoints) {
    if (group.addressLength !== length) continue;
    const at = index * length;
    const key = addressKey(group.addresses, at, length);
    if (seen.has(key)) continue;
    seen.add(key);
    records.push(addressRecord(owner, ttl, group.addresses, at, length));
  }
  return records;
}
