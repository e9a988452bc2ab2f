/** The removed and added records of a change. */
import type { PlainRecord, RecordLog } from "./record-log.ts";

/** One step from a state of a zone to the next. */
export interface ZoneChange {
  /** The serial of the previous state. */
  readonly from: number;
  /** Of the next state. */
  readonly soa: PlainRecord;
  /** Without the SOA records. */
  readonly removed: RecordLog;
  readonly added: RecordLog;
}
