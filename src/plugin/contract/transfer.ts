/**
 * Zones that may be copied as a whole (AXFR, RFC 5936; IXFR, RFC 1995): what a plugin that holds zones offers, and a plugin that hands
 * them out takes. Sources are asked in chain order; the one who asks does framing, access and NOTIFY.
 */
import type { Name } from "../../dns/name.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import type { SOA } from "../../dns/record-table.ts";

export interface TransferSource {
  /** The apexes of the zones that can be transferred, in lower case. */
  readonly transferZones: readonly Name[];
  /**
   * One state of a zone; what happens later does not change it.
   * @param knownSerial the state that whoever asks has: where the changes since then lead to a state that is not the last one, that one will do
   * @returns `undefined` for a name that is not the apex of one of its zones
   * @throws ZoneNotLoadedError while not all of the zone is known: part of one would pass for the whole
   */
  transfer(apex: Name, knownSerial?: number): ZoneTransfer | undefined;
  /**
   * Calls back with the apex after each change that gave a zone a new state. There may be many a second: whoever sends NOTIFY
   * gathers them. The returned function ends that.
   */
  onZoneChange(listener: (apex: Name) => void): () => void;
}

export type StartOfAuthority = ReturnType<typeof SOA.create>;

export interface ZoneTransfer {
  /** First and last record of a transfer. No later state has the same serial. */
  readonly soa: StartOfAuthority;
  /** All records but the SOA, made as they are asked for: a zone of any size takes the memory of one record. */
  records(): Iterable<ResourceRecord>;
  /**
   * What changed since an older state, as RFC 1995 section 4 has it between the first and the last SOA record: for each step the SOA record
   * before and what went, the SOA record after and what came. `undefined` where that is not known any more, or a copy of the zone is
   * smaller. Without this method a copy is always sent.
   */
  changesSince?(serial: number): Iterable<ResourceRecord> | undefined;
}

/** The zone is served, but cannot be copied yet. */
export class ZoneNotLoadedError extends Error {
  override readonly name = "ZoneNotLoadedError";
  readonly zone: Name;

  constructor(zone: Name) {
    super(`zone ${zone} is not completely known yet`);
    this.zone = zone;
  }
}

/**
 * The records of the answer to AXFR, or to IXFR from somebody who has the state `knownSerial`: everything between two SOA records, or
 * the SOA record alone for who is up to date (RFC 1995 section 2). Where the differences are not known, a complete zone is a valid
 * answer to IXFR.
 */
export function* transferRecords(transfer: ZoneTransfer, knownSerial?: number): Generator<ResourceRecord> {
  const { soa } = transfer;
  yield soa;
  if (knownSerial !== undefined && isAsNew(knownSerial, soa.data.serial)) return;
  const changes = knownSerial === undefined ? undefined : transfer.changesSince?.(knownSerial);
  yield* changes ?? transfer.records();
  yield soa;
}

/** What {@link transferRecords} gives: nothing new, the changes, or the whole zone. */
export function transferWay(transfer: ZoneTransfer, knownSerial?: number): "same" | "ixfr" | "axfr" {
  if (knownSerial === undefined) return "axfr";
  if (isAsNew(knownSerial, transfer.soa.data.serial)) return "same";
  return transfer.changesSince?.(knownSerial) === undefined ? "axfr" : "ixfr";
}

/** Whether serial `one` is the same as `other` or newer, in the arithmetic of RFC 1982 section 3.2. */
export function isAsNew(one: number, other: number): boolean {
  return (one - other) >>> 0 < 0x8000_0000;
}
