/** Builds a zone from a source other than zone text: record by record, any of which may be malformed. */
import { Name } from "../../dns/name.ts";
import { RecordClass } from "../../dns/numbers.ts";
import { RdataScanner, tokenizeRecord } from "../../dns/rdata-scanner.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { SOA } from "../../dns/record-table.ts";
import { parseData, plainData } from "../../dns/resource-record.ts";
import { parseRecordType, recordTypeName } from "../../dns/type-names.ts";
import { Zone } from "../data/zone.ts";
import { Added } from "../data/zone-records.ts";

/** The listing is not a valid zone. */
export class ZoneListingError extends Error {
  override readonly name = "ZoneListingError";
}

/** RFC 2181 section 8. */
const MAX_TTL = 0x7fff_ffff;
/** Characters of a log line. */
const MAX_COMPLAINT_LENGTH = 500;

export class ZoneListing {
  readonly apex: Name;
  readonly #zone: Zone;
  readonly #limit: number;
  readonly #complain: (complaint: string) => void;
  #soa: ReturnType<typeof SOA.create> | undefined;

  /**
   * @param limit bytes that the zone may take
   * @param complain called for each skipped record
   */
  constructor(apex: Name, limit: number, complain: (complaint: string) => void) {
    this.apex = apex;
    this.#zone = new Zone(apex);
    this.#limit = limit;
    this.#complain = complain;
  }

  /** Adds a record whose owner and data are zone text; names without a final dot are absolute. */
  addText(owner: string, ttl: number, type: string, data: string): void {
    this.add(owner, ttl, type, (name, number) => {
      const scanner = new RdataScanner(data, tokenizeRecord(data), 0, Name.root);
      return { name, type: number, class: RecordClass.IN, ttl, data: parseData(scanner, number) };
    });
  }

  /**
   * Adds a record made by `make`. If it throws, only this record is skipped.
   * @param ttl seconds
   */
  add(owner: string, ttl: number, type: string, make: (name: Name, type: number) => ResourceRecord): void {
    try {
      const number = parseRecordType(type);
      if (number === undefined) throw new ZoneListingError("no record type");
      if (!Number.isInteger(ttl) || ttl < 0 || ttl > MAX_TTL) throw new ZoneListingError(`its TTL is ${ttl}`);
      this.#add(make(Name.parse(owner), number));
    } catch (error) {
      if (error instanceof ZoneTooLarge || !(error instanceof Error)) throw error;
      this.passOver(owner, type, error.message);
    }
  }

  passOver(owner: string, type: string, reason: string): void {
    const complaint = `${type} record of ${owner} is skipped: ${reason}`.slice(0, MAX_COMPLAINT_LENGTH);
    this.#complain(complaint.replace(/\p{Cc}/gu, "?"));
  }

  /**
   * The zone, without {@link Zone.order}.
   * @param chooseSerial receives the serial of the source
   * @throws ZoneListingError if there is no SOA record
   */
  finish(chooseSerial: (serial: number) => number): Zone {
    const soa = this.#soa;
    if (soa === undefined) throw new ZoneListingError(`the zone ${this.apex} has no SOA record`);
    const serial = chooseSerial(soa.data.serial);
    this.#put(SOA.create(soa.name, soa.ttl, { ...soa.data, serial }));
    return this.#zone;
  }

  #add(record: ResourceRecord): void {
    if (!record.name.isAtOrBelow(this.apex)) throw new ZoneListingError("the name is not in the zone");
    if (!SOA.is(record)) this.#put(record);
    else if (record.name.equals(this.apex)) this.#soa = record;
    else throw new ZoneListingError("it is not at the apex");
  }

  #put(record: ResourceRecord): void {
    const data = plainData(record);
    const { wire } = record.name;
    const added = this.#zone.add(wire, wire.length, record.type, record.ttl, data, data.length);
    if (added === Added.TOO_LARGE)
      throw new ZoneListingError(`${recordTypeName(record.type)} records of this name fit into no message`);
    if (this.#zone.size > this.#limit) throw new ZoneTooLarge(this.apex, this.#limit);
  }
}

/** None of it is used. */
export class ZoneTooLarge extends Error {
  override readonly name = "ZoneTooLarge";

  constructor(apex: Name, limit: number) {
    super(`the zone ${apex} is larger than ${limit} octets`);
  }
}
