/** The records of a name, one after the other, as octets. */
import { readU16 } from "../../dns/octets.ts";
import { nameLength } from "./rdata-names.ts";
import type { PlainRecord } from "./record-log.ts";
import type { ZoneRecords } from "./zone-records.ts";

const owners = new Uint8Array(256);

/**
 * @param first start of the node's list of RRsets
 * @param visit receives views, which are valid until the next record; `index` counts within the RRset
 */
export function eachRecord(
  records: ZoneRecords,
  node: number,
  first: number,
  visit: (record: PlainRecord, rrset: number, index: number) => void,
): void {
  if (first < 0) return;
  owners.set(records.apex.wire, records.names.writeLabels(node, owners, 0));
  const owner = owners.subarray(0, nameLength(owners, 0));
  for (let rrset = first; rrset >= 0; rrset = records.next(rrset)) {
    const [type, ttl, count] = [records.type(rrset), records.ttl(rrset), records.count(rrset)];
    const { bytes } = records.heap;
    let at = records.data(rrset);
    for (let index = 0; index < count; index++) {
      const end = at + 2 + readU16(bytes, at);
      visit({ owner, type, ttl, rdata: bytes.subarray(at + 2, end) }, rrset, index);
      at = end;
    }
  }
}
