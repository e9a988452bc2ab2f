/** Reads a zone from a file. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { Name } from "../../dns/name.ts";
import { className, RecordClass } from "../../dns/numbers.ts";
import { RecordType, recordTypeName } from "../../dns/type-names.ts";
import { formatZoneTextFault, type ZoneTextFault } from "../../dns/zone-text/fault.ts";
import type { ZoneTextRecord } from "../../dns/zone-text/parser.ts";
import { readZoneText, type ZoneTextFiles } from "../../dns/zone-text/read.ts";
import { NO_NODE } from "../data/name-tree.ts";
import { Zone } from "../data/zone.ts";
import { Added } from "../data/zone-records.ts";

/** The file is not a valid zone. */
export class ZoneFileError extends Error {
  override readonly name = "ZoneFileError";
  readonly file: string;
  readonly origin: Name;
  /** The first hundred. */
  readonly faults: readonly ZoneTextFault[];

  constructor(file: string, origin: Name, faults: readonly ZoneTextFault[], errors: number) {
    const lines = faults.filter(({ severity }) => severity === "error").map(formatZoneTextFault);
    const shown = lines.slice(0, MAX_SHOWN);
    const more = errors - shown.length;
    if (more > 0) shown.push(`and ${more} more`);
    super(`failed to parse file "${file}" for origin ${origin} with error ${shown.join("; ")}`);
    this.file = file;
    this.origin = origin;
    this.faults = faults;
  }
}

const MAX_SHOWN = 10;

/** The only fault of the file: its SOA record is below the origin. */
export class MisplacedSoaError extends ZoneFileError {
  /** Owner of the SOA record. */
  readonly apex: Name;

  constructor(file: string, origin: Name, faults: readonly ZoneTextFault[], apex: Name) {
    super(file, origin, faults, 1);
    this.apex = apex;
  }
}

/** The file has the known serial. */
export class SameSerial extends Error {
  override readonly name = "SameSerial";
}

export interface ReadZoneFileOptions {
  readonly file: string;
  /** Completes relative names. */
  readonly origin: Name;
  /** The zone, if it does not begin at the origin. */
  readonly apex?: Name | undefined;
  readonly files: ZoneTextFiles;
  /** Reading ends with {@link SameSerial} at an SOA record with this serial. */
  readonly knownSerial?: number | undefined;
  /** The zone read from the file before: room is made for as much. */
  readonly former?: Zone | undefined;
  /** Called between portions; its rejection ends the reading. */
  readonly pause?: () => Promise<void>;
}

export interface ReadZone {
  readonly zone: Zone;
  readonly warnings: readonly ZoneTextFault[];
}

/**
 * Reads a zone in portions.
 * @throws ZoneFileError, SameSerial, or the error of the file system for the file itself
 */
export async function readZoneFile(options: ReadZoneFileOptions): Promise<ReadZone> {
  const { file, origin } = options;
  const pause = options.pause ?? nextTurn;
  const apex = options.apex ?? origin;
  const zone = new Zone(apex);
  if (options.former !== undefined) zone.reserveAs(options.former);
  const sink = new ZoneFileSink(zone, options.knownSerial);
  const faults = await readZoneText({
    file,
    files: options.files,
    origin,
    sink,
    pause: () => zone.makeRoom(pause),
  });
  if (!zone.hasSoa) {
    const reason = `file "${file}" has no SOA record for origin ${apex}`;
    faults.add({ file, line: 0, column: 0, reason, severity: "error" });
    const { misplacedSoa } = sink;
    if (faults.errors === 1 && misplacedSoa !== undefined)
      throw new MisplacedSoaError(file, origin, faults.list, misplacedSoa);
  }
  if (faults.errors > 0) throw new ZoneFileError(file, origin, faults.list, faults.errors);
  await zone.order(pause);
  return { zone, warnings: faults.list };
}

class ZoneFileSink {
  readonly #zone: Zone;
  readonly #knownSerial: number | undefined;
  /** Owner of the first SOA record below the apex. */
  misplacedSoa: Name | undefined;

  constructor(zone: Zone, knownSerial: number | undefined) {
    this.#zone = zone;
    this.#knownSerial = knownSerial;
  }

  record(record: ZoneTextRecord): string | undefined {
    const { type } = record;
    if (record.class !== RecordClass.IN) return classWarning(record);
    const isSecond = type === RecordType.SOA && this.#hasAnotherSoa(record);
    const added = this.#zone.add(
      record.owner,
      record.ownerLength,
      type,
      record.ttl,
      record.rdata,
      record.rdataLength,
    );
    if (added === Added.OUT_OF_ZONE) {
      this.#noteMisplaced(record);
      return outOfZoneWarning(type, this.#zone.apex);
    }
    if (added === Added.TOO_LARGE) return `${recordTypeName(type)} records of this name fit into no message`;
    if (isSecond) return "warning: a second SOA record of the zone: it replaces the first";
    if (type === RecordType.SOA && this.#zone.serial === this.#knownSerial) throw new SameSerial();
    return this.#aliasProblem(record);
  }

  #noteMisplaced({ type, owner, ownerLength }: ZoneTextRecord): void {
    if (type !== RecordType.SOA || this.misplacedSoa !== undefined) return;
    const name = Name.fromCheckedWire(owner.slice(0, ownerLength));
    if (name.isBelow(this.#zone.apex)) this.misplacedSoa = name;
  }

  /** RFC 1035 section 5.2: there must be exactly one; an identical copy does no harm. */
  #hasAnotherSoa({ owner, ownerLength, type, rdata, rdataLength }: ZoneTextRecord): boolean {
    const { hasSoa, records } = this.#zone;
    return hasSoa && records.locate(owner, ownerLength, type, rdata, rdataLength) < 0;
  }

  /** RFC 1034 section 3.6.2, RFC 6672 section 2.4. */
  #aliasProblem({ owner, ownerLength, type }: ZoneTextRecord): string | undefined {
    if (mayStandByAlias(type)) return undefined;
    const { records } = this.#zone;
    const node = records.nodeFor(owner, ownerLength, false);
    if (node === NO_NODE) return undefined;
    if (type === RecordType.CNAME) {
      for (let rrset = records.first(node); rrset >= 0; rrset = records.next(rrset)) {
        const other = records.type(rrset);
        if (other === RecordType.CNAME && records.count(rrset) > 1)
          return "warning: a second CNAME record of this name";
        if (other !== RecordType.CNAME && !mayStandByAlias(other))
          return `warning: CNAME beside other data: the name has ${recordTypeName(other)} records`;
      }
      return undefined;
    }
    const own = type === RecordType.DNAME ? records.rrset(node, type) : -1;
    if (own >= 0 && records.count(own) > 1) return "warning: a second DNAME record of this name";
    return records.rrset(node, RecordType.CNAME) >= 0
      ? "warning: other data beside a CNAME record"
      : undefined;
  }
}

export function classWarning(record: ZoneTextRecord): string {
  return `warning: ignored: class ${className(record.class)} in a zone of class IN`;
}

export function outOfZoneWarning(type: number, apex: Name): string {
  return type === RecordType.SOA
    ? `warning: ignored: an SOA record that is not at the apex ${apex}`
    : `warning: ignored: the name does not lie in ${apex}`;
}

/** Whether records of the type may have the same owner as a CNAME record. */
export function mayStandByAlias(type: number): boolean {
  return type === RecordType.RRSIG || type === RecordType.NSEC || type === RecordType.NSEC3;
}
