/** Permissions for changes in a zone, and the size limits of updates and of the zone. */
import type { Message } from "../../dns/message.ts";
import type { Name } from "../../dns/name.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { plainData } from "../../dns/resource-record.ts";
import type { Zone } from "../data/zone.ts";
import { copyOfZone } from "../data/zone-transfer.ts";
import type { ZoneStep } from "./edited-zone.ts";

/** A key may change these types at a name. */
export interface UpdatePermission {
  readonly key: Name;
  /** `undefined` for all names of the zone. */
  readonly name: Name | undefined;
  /** ANY is the deletion of all types at the name; `undefined` for everything. */
  readonly types: readonly number[] | undefined;
}

export interface UpdatePolicy {
  readonly permissions: readonly UpdatePermission[];
  /** Records of the zone. */
  readonly maxRecords: number;
  /** Octets of the zone's records, uncompressed. */
  readonly maxOctets: number;
  /** Prerequisites and changes of one update. */
  readonly maxUpdateRecords: number;
  /** Types that updates cannot change: they get NOTIMP. */
  readonly unsupported: ReadonlySet<number>;
}

/** No limits, and everything except records made by signing. */
export function openPolicy(permissions: readonly UpdatePermission[]): UpdatePolicy {
  return {
    permissions,
    maxRecords: Number.POSITIVE_INFINITY,
    maxOctets: Number.POSITIVE_INFINITY,
    maxUpdateRecords: Number.POSITIVE_INFINITY,
    unsupported: new Set(),
  };
}

/** Whether any rule names the key. */
export function isKnown(key: Name, { permissions }: UpdatePolicy): boolean {
  return permissions.some((permission) => permission.key.equals(key));
}

/** Whether the key may make all changes of an update. */
export function mayChange(key: Name, { authority }: Message, { permissions }: UpdatePolicy): boolean {
  const own = permissions.filter((permission) => permission.key.equals(key));
  return authority.every((record) =>
    own.some(
      ({ name, types }) =>
        (name === undefined || name.equals(record.name)) &&
        (types === undefined || types.includes(record.type)),
    ),
  );
}

/** Records and octets. */
export interface ZoneSize {
  readonly records: number;
  readonly octets: number;
}

export function hasRoom({ records, octets }: ZoneSize, policy: UpdatePolicy): boolean {
  return records <= policy.maxRecords && octets <= policy.maxOctets;
}

export function hasBounds({ maxRecords, maxOctets }: UpdatePolicy): boolean {
  return Number.isFinite(maxRecords) || Number.isFinite(maxOctets);
}

export function sizeOfZone(zone: Zone): ZoneSize {
  const copy = copyOfZone(zone);
  let size: ZoneSize = { records: 1, octets: octetsOf(copy.soa) };
  for (const record of copy.records())
    size = { records: size.records + 1, octets: size.octets + octetsOf(record) };
  return size;
}

/** The size after steps; each SOA record replaces the previous one. */
export function sizeAfter(size: ZoneSize, steps: readonly ZoneStep[]): ZoneSize {
  let { records, octets } = size;
  for (const { sign, record } of steps) {
    const count = sign === "+" ? 1 : -1;
    records += count;
    octets += count * octetsOf(record);
  }
  return { records, octets };
}

/** Type, class, TTL and the length of the data are ten octets. */
function octetsOf(record: ResourceRecord): number {
  return record.name.wire.length + 10 + plainData(record).length;
}
