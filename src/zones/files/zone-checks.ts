/** Checks a zone as a whole, like named-checkzone. */

import { Name } from "../../dns/name.ts";
import { readU16 } from "../../dns/octets.ts";
import { RecordType, recordTypeName } from "../../dns/type-names.ts";
import { APEX, NO_NODE } from "../data/name-tree.ts";
import { hostOffset, nameLength } from "../data/rdata-names.ts";
import type { Zone } from "../data/zone.ts";
import type { ZoneRecords } from "../data/zone-records.ts";

export interface ZoneProblem {
  readonly severity: "error" | "warning";
  readonly text: string;
}

/** Types whose hosts need addresses. */
const POINTING = [RecordType.NS, RecordType.MX, RecordType.SRV] as const;

export function checkZone(zone: Zone): ZoneProblem[] {
  const { records } = zone;
  const problems: ZoneProblem[] = [];
  if (records.rrset(APEX, RecordType.NS) < 0) problems.push({ severity: "error", text: "has no NS records" });
  if (records.rrset(APEX, RecordType.DS) >= 0)
    problems.push({
      severity: "error",
      text: "has DS records at its apex: they belong in the parent zone",
    });
  for (let node = APEX; node < records.names.limit; node++) {
    if (!records.names.exists(node)) continue;
    for (const type of POINTING) checkHosts(records, node, type, problems);
  }
  return problems;
}

function checkHosts(records: ZoneRecords, node: number, type: number, problems: ZoneProblem[]): void {
  const rrset = records.rrset(node, type);
  if (rrset < 0) return;
  const { bytes } = records.heap;
  let at = records.data(rrset);
  for (let left = records.count(rrset); left > 0; left--) {
    const host = at + 2 + hostOffset(type);
    const problem =
      hostProblem(records, host, nameLength(bytes, host)) ?? missingGlue(records, node, type, host);
    if (problem !== undefined) {
      const text = `${records.nodeName(node)}/${recordTypeName(type)} '${nameAt(bytes, host)}' ${problem}`;
      // Other dangling records only affect names in the zone and not the zone itself: named-checkzone accepts them, too.
      problems.push({ severity: type === RecordType.NS && node === APEX ? "error" : "warning", text });
    }
    at += 2 + readU16(bytes, at);
  }
}

/** Hosts outside of the zone, and below a delegation, are not checked. */
function hostProblem(records: ZoneRecords, at: number, length: number): string | undefined {
  const { bytes } = records.heap;
  if (length === 1 || !records.liesInZone(bytes, at, length)) return undefined;
  const node = records.nodeAt(bytes, at, length);
  if (node === NO_NODE) return hasCoveringName(records, at, length) ? undefined : NO_ADDRESS;
  if (records.rrset(node, RecordType.CNAME) >= 0) return "is a CNAME (illegal)";
  const hasAddress = records.rrset(node, RecordType.A) >= 0 || records.rrset(node, RecordType.AAAA) >= 0;
  return hasAddress || isBelowCut(records, node) ? undefined : NO_ADDRESS;
}

/** A name server below its own delegation can only be found by its glue (RFC 9471), one below another delegation faster with it. */
function missingGlue(records: ZoneRecords, node: number, type: number, at: number): string | undefined {
  if (type !== RecordType.NS || node === APEX) return undefined;
  const { bytes } = records.heap;
  const length = nameLength(bytes, at);
  if (!records.liesInZone(bytes, at, length)) return undefined;
  const host = Name.fromCheckedWire(bytes.slice(at, at + length));
  const glue = records.nodeAt(bytes, at, length);
  const hasGlue =
    glue !== NO_NODE && (records.rrset(glue, RecordType.A) >= 0 || records.rrset(glue, RecordType.AAAA) >= 0);
  if (hasGlue) return undefined;
  if (host.isAtOrBelow(records.nodeName(node))) return "has no REQUIRED GLUE address records (A or AAAA)";
  const nearest = nearestAncestor(records, at, length);
  return nearest !== NO_NODE && isBelowCut(records, nearest)
    ? "has no SIBLING GLUE address records (A or AAAA)"
    : undefined;
}

const NO_ADDRESS = "has no address records (A or AAAA)";

function isBelowCut(records: ZoneRecords, node: number): boolean {
  for (let at = node; at !== APEX; at = records.names.parent(at)) {
    if (records.rrset(at, RecordType.NS) >= 0) return true;
  }
  return false;
}

/** A wildcard may have the addresses, and so may a delegated zone. */
function hasCoveringName(records: ZoneRecords, at: number, length: number): boolean {
  const nearest = nearestAncestor(records, at, length);
  if (nearest === NO_NODE) return false;
  return records.names.child(nearest, WILDCARD, 0) !== NO_NODE || isBelowCut(records, nearest);
}

/** The nearest node above a name of the zone. */
function nearestAncestor(records: ZoneRecords, at: number, length: number): number {
  const { bytes } = records.heap;
  for (let end = at, left = length; left > records.apex.wire.length; ) {
    const step = (bytes[end] ?? 0) + 1;
    end += step;
    left -= step;
    const node = records.nodeAt(bytes, end, left);
    if (node !== NO_NODE) return node;
  }
  return NO_NODE;
}

const WILDCARD = Uint8Array.of(1, 0x2a);

function nameAt(bytes: Uint8Array, at: number): string {
  return Name.fromCheckedWire(bytes.slice(at, at + nameLength(bytes, at))).toString();
}
