/** Records of a zone as octets, outside of it: what a change takes away and adds. */
import type { RecordLog } from "./record-log.ts";

export interface PlainRecord {
  /** Uncompressed. */
  readonly owner: Uint8Array;
  readonly type: number;
  readonly ttl: number;
  readonly rdata: Uint8Array;
}

/** One step from a state of a zone to the next. */
export interface ZoneChange {
  /** The serial of the state in front of it. */
  readonly from: number;
  /** Of the next state. */
  readonly soa: PlainRecord;
  /** Without the SOA records. */
  readonly removed: RecordLog;
  readonly added: RecordLog;
}
