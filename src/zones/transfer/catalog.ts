/** A catalog zone: the names of other zones, as records (RFC 9432). */
import { Name } from "../../dns/name.ts";
import { PTR, TXT } from "../../dns/record-table.ts";
import { RecordType } from "../../dns/type-names.ts";
import { APEX, NO_NODE } from "../data/name-tree.ts";
import { NO_RRSET } from "../data/rrset-table.ts";
import type { Zone } from "../data/zone.ts";
import { rrsetRecords } from "../data/zone-transfer.ts";

export interface CatalogMember {
  readonly zone: Name;
  /** Its unique label, in lower case: with another label the zone is reset (section 5.4). */
  readonly id: string;
  /** The catalog that may take it over (section 4.3.1). */
  readonly newOwner: Name | undefined;
}

/** Members by the text of their names in lower case. */
export type Catalog = ReadonlyMap<string, CatalogMember>;

/** The zone is not a catalog, or is broken as a whole (sections 4.1 and 5.1). */
export class CatalogError extends Error {
  override readonly name = "CatalogError";
}

/** Members of one catalog, limited because each takes memory even before it is transferred. */
const MAX_MEMBERS = 100_000;
const VERSION = "2";
/** Nodes between two pauses. */
const PORTION = 1_000;

/** @throws CatalogError */
export async function readCatalog(zone: Zone, pause: () => Promise<void>): Promise<Catalog> {
  const { records, apex } = zone;
  if (records.rrset(APEX, RecordType.NS) === NO_RRSET) throw new CatalogError("the catalog has no NS record");
  requireVersion(zone);
  const members = new Map<string, CatalogMember>();
  const zones = nodeOf(zone, Name.fromLabels(["zones"], apex));
  if (zones === NO_NODE) return members;
  const { names } = records;
  for (let node = APEX + 1; node < names.limit; node++) {
    if (node % PORTION === 0) await pause();
    if (!names.exists(node) || names.parent(node) !== zones) continue;
    const owner = records.nodeName(node);
    const target = onlyTarget(zone, owner);
    if (target === undefined) continue;
    const member = target.toLowerCase();
    const text = member.toString();
    if (members.has(text)) throw new CatalogError(`the catalog lists ${text} twice`);
    if (members.size === MAX_MEMBERS)
      throw new CatalogError(`the catalog has more than ${MAX_MEMBERS} members`);
    const newOwner = onlyTarget(zone, Name.fromLabels(["coo"], owner));
    members.set(text, { zone: member, id: idOf(owner), newOwner });
  }
  return members;
}

/** The first label. */
function idOf({ wire }: Name): string {
  return Buffer.from(wire.subarray(1, 1 + (wire[0] ?? 0))).toString("latin1");
}

function requireVersion(zone: Zone): void {
  const owner = Name.fromLabels(["version"], zone.apex);
  const node = nodeOf(zone, owner);
  const rrset = node === NO_NODE ? NO_RRSET : zone.records.rrset(node, RecordType.TXT);
  const found = rrset === NO_RRSET ? [] : [...rrsetRecords(zone.records, owner, rrset)];
  const versions = found.map((record) =>
    TXT.is(record) ? Buffer.concat(record.data.strings).toString("latin1") : "",
  );
  if (versions.length === 1 && versions[0] === VERSION) return;
  const shown =
    versions.length === 0 ? "none" : versions.map((version) => JSON.stringify(version)).join(", ");
  throw new CatalogError(`the catalog must have version "${VERSION}", and has ${shown}`);
}

/** The target of the only PTR record of a name, if there is one. */
function onlyTarget(zone: Zone, owner: Name): Name | undefined {
  const node = nodeOf(zone, owner);
  const rrset = node === NO_NODE ? NO_RRSET : zone.records.rrset(node, RecordType.PTR);
  if (rrset === NO_RRSET) return undefined;
  if (zone.records.count(rrset) > 1)
    throw new CatalogError(`the catalog has several PTR records at ${owner}`);
  const [record] = rrsetRecords(zone.records, owner, rrset);
  return record !== undefined && PTR.is(record) ? record.data.target : undefined;
}

function nodeOf(zone: Zone, { wire }: Name): number {
  return zone.records.nodeFor(wire, wire.length, false);
}
