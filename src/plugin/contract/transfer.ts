/**
 * Zones that may be transferred (AXFR, RFC 5936; IXFR, RFC 1995): the interface between plugins that hold zones and
 * plugins that transfer them. Sources are tried in chain order; the transferring plugin does framing, access control
 * and NOTIFY.
 */
import type { Name } from "../../dns/name.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import type { SOA } from "../../dns/record-table.ts";

/** A plugin that offers its zones for transfer, over the directive `transfer`. */
export interface TransferSource {
  /** The apexes of the zones that can be transferred, in lower case. */
  readonly transferZones: readonly Name[];
  /**
   * One state of a zone; later changes do not affect it.
   * @param knownSerial the client's state: an older state than the latest one is acceptable if the known changes lead
   * to it
   * @returns `undefined` if the name is not the apex of one of its zones
   * @throws ZoneNotLoadedError until the whole zone is loaded: an incomplete copy would pass for the zone
   */
  transfer(apex: Name, knownSerial?: number): ZoneTransfer | undefined;
  /**
   * Calls back with the apex after each change that gave a zone a new state. There may be many a second: senders of
   * NOTIFY coalesce them. The returned function removes the listener.
   */
  onZoneChange(listener: (apex: Name) => void): () => void;
}

export type StartOfAuthority = ReturnType<typeof SOA.create>;

/** A zone on its way to another server. */
export interface ZoneTransfer {
  /** First and last record of a transfer. No other state has the same serial. */
  readonly soa: StartOfAuthority;
  /** All records but the SOA, generated lazily: a zone of any size takes the memory of one record. */
  records(): Iterable<ResourceRecord>;
  /**
   * The changes since an older state, as between the first and the last SOA record in RFC 1995 section 4: for each
   * step the old SOA record and the removed records, the new SOA record and the added records. `undefined` if the
   * changes are not known any more, or a full copy is smaller. Without this method a copy is always sent.
   */
  changesSince?(serial: number): Iterable<ResourceRecord> | undefined;
}

/** The zone is served, but cannot be transferred yet. */
export class ZoneNotLoadedError extends Error {
  override readonly name = "ZoneNotLoadedError";
  readonly zone: Name;

  constructor(zone: Name) {
    super(`zone ${zone} is not completely loaded yet`);
    this.zone = zone;
  }
}

/**
 * The records of the answer to AXFR, or to IXFR from a client with the state `knownSerial`: everything between two
 * SOA records, or the SOA record alone for an up-to-date client (RFC 1995 section 2). If the differences are not
 * known, the complete zone is a valid answer to IXFR.
 */
export function* transferRecords(transfer: ZoneTransfer, knownSerial?: number): Generator<ResourceRecord> {
  const { soa } = transfer;
  yield soa;
  if (knownSerial !== undefined && isAsNew(knownSerial, soa.data.serial)) return;
  const changes = knownSerial === undefined ? undefined : transfer.changesSince?.(knownSerial);
  yield* changes ?? transfer.records();
  yield soa;
}

/** The kind of answer that {@link transferRecords} gives: nothing new, the changes, or the whole zone. */
export function transferWay(transfer: ZoneTransfer, knownSerial?: number): "same" | "ixfr" | "axfr" {
  if (knownSerial === undefined) return "axfr";
  if (isAsNew(knownSerial, transfer.soa.data.serial)) return "same";
  return transfer.changesSince?.(knownSerial) === undefined ? "axfr" : "ixfr";
}

/** Whether serial `one` is the same as `other` or newer, in the arithmetic of RFC 1982 section 3.2. */
export function isAsNew(one: number, other: number): boolean {
  return (one - other) >>> 0 < 0x8000_0000;
}
