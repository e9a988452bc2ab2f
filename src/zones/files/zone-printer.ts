/** Prints a zone as text in canonical order (RFC 4034 section 6): the SOA record first, then name by name. */

import { formatRecord } from "../../dns/resource-record.ts";
import { recordTypeName } from "../../dns/type-names.ts";
import { APEX } from "../data/name-tree.ts";
import { ANY_TYPE, NodeOrder } from "../data/node-order.ts";
import type { Zone } from "../data/zone.ts";
import type { ZoneRecords } from "../data/zone-records.ts";
import { rrsetRecords } from "../data/zone-transfer.ts";

/** Names between two pauses. */
const PORTION = 50;

/** @returns the lines, each with its end, grouped by name */
export async function* zoneLines(zone: Zone, pause?: () => Promise<void>): AsyncGenerator<string> {
  for (const records of [zone.records, zone.hashed]) {
    const order = new NodeOrder(records, ANY_TYPE);
    await order.build(pause);
    for (let index = 0; index < order.count; index++) {
      if (index % PORTION === PORTION - 1) await pause?.();
      yield linesOf(records, order.at(index));
    }
  }
}

function linesOf(records: ZoneRecords, node: number): string {
  const name = records.nodeName(node);
  const rrsets: number[] = [];
  for (let rrset = records.first(node); rrset >= 0; rrset = records.next(rrset)) rrsets.push(rrset);
  rrsets.sort((one, other) => rank(records, node, one) - rank(records, node, other));
  let text = "";
  for (const rrset of rrsets) {
    const lines = Array.from(rrsetRecords(records, name, rrset), formatRecord).sort();
    text += `${lines.join("\n")}\n`;
  }
  return text;
}

/** By type, signatures after the records that they sign; the SOA record first. */
function rank(records: ZoneRecords, node: number, rrset: number): number {
  const covered = records.covered(rrset);
  const type = covered === 0 ? records.type(rrset) : covered;
  const first = node === APEX && recordTypeName(type) === "SOA" ? -0x100000 : 0;
  return first + type * 2 + (covered === 0 ? 0 : 1);
}
