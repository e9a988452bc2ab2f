/**
 * Computes the difference between a zone file and the served zone without building a second zone. Errors, warnings and large
 * differences need a full read.
 */
import { RecordClass } from "../../dns/numbers.ts";
import { readU32 } from "../../dns/octets.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { ZoneTextFault } from "../../dns/zone-text/fault.ts";
import type { ZoneTextRecord } from "../../dns/zone-text/parser.ts";
import { readZoneText } from "../../dns/zone-text/read.ts";
import { ZoneChangeError } from "../changes/zone-changes.ts";
import { ZoneComparison } from "../changes/zone-comparison.ts";
import type { Zone } from "../data/zone.ts";
import type { ZoneChange } from "../data/zone-change.ts";
import {
  classWarning,
  mayStandByAlias,
  outOfZoneWarning,
  type ReadZoneFileOptions,
  SameSerial,
} from "./parsed-file.ts";

export interface FileDifference {
  readonly change: ZoneChange;
  readonly warnings: readonly ZoneTextFault[];
}

/** Nodes between two pauses. */
const PORTION = 500;

/** The file needs a full read. */
class NotComparable extends Error {
  override readonly name = "NotComparable";
}

/**
 * @param zone the served zone; must not change until the promise settles
 * @returns `undefined` if the file needs a full read
 * @throws SameSerial, or the error of the file system for the file itself
 */
export async function readFileDifference(
  zone: Zone,
  options: ReadZoneFileOptions & { readonly pause: () => Promise<void> },
): Promise<FileDifference | undefined> {
  const { file, files, origin, pause } = options;
  const sink = new DifferenceSink(zone, options.knownSerial);
  try {
    const faults = await readZoneText({
      file,
      files,
      origin,
      sink,
      pause: () => sink.comparison.pause(pause),
    });
    if (faults.errors > 0) return undefined;
    const change = await sink.comparison.finish(pause);
    return change && { change, warnings: faults.list };
  } catch (error) {
    if (error instanceof NotComparable || error instanceof ZoneChangeError) return undefined;
    throw error;
  }
}

/** Whether no name changed by a pending change has other data beside an alias. If one has, the full read logs its place. */
export async function hasPlainAliases({ records }: Zone, pause: () => Promise<void>): Promise<boolean> {
  const { pending } = records.names;
  for (let place = 0; pending !== undefined && place < pending.count; place++) {
    if (place % PORTION === PORTION - 1) await pause();
    let [aliases, others] = [0, 0];
    for (let rrset = pending.after(place); rrset >= 0; rrset = records.next(rrset)) {
      const type = records.type(rrset);
      if (type === RecordType.CNAME) aliases += records.count(rrset);
      else if (!mayStandByAlias(type)) others++;
    }
    if (aliases > 1 || (aliases > 0 && others > 0)) return false;
  }
  return true;
}

class DifferenceSink {
  readonly comparison: ZoneComparison;
  readonly #zone: Zone;
  readonly #knownSerial: number | undefined;

  constructor(zone: Zone, knownSerial: number | undefined) {
    this.#zone = zone;
    this.#knownSerial = knownSerial;
    this.comparison = new ZoneComparison(zone);
  }

  record(record: ZoneTextRecord): string | undefined {
    const { owner, ownerLength, type, ttl, rdata, rdataLength } = record;
    if (record.class !== RecordClass.IN) return classWarning(record);
    const { comparison } = this;
    // A full read decides which of two SOA records counts.
    if (type === RecordType.SOA && comparison.soa !== undefined) throw new NotComparable();
    if (!comparison.take(owner, ownerLength, type, ttl, rdata, rdataLength))
      return outOfZoneWarning(type, this.#zone.apex);
    if (comparison.isTooMuch) throw new NotComparable();
    if (type === RecordType.SOA && readU32(rdata, rdataLength - 20) === this.#knownSerial)
      throw new SameSerial();
    return undefined;
  }
}
