/**
 * Padding of queries on encrypted transports up to the next multiple of 128 octets, so that their length reveals little about the
 * name (RFC 7830, RFC 8467).
 */
import { octetAt, readU16, writeU16 } from "../../dns/octets.ts";
import { RecordType } from "../../dns/type-names.ts";

/** RFC 8467 section 4.1. */
export const BLOCK = 128;
const PADDING = 12;
/** Root, type, class, TTL, length. */
const OPT_OCTETS = 11;
const OPTION_OCTETS = 4;
/** UDP size in the OPT record that a query gets only for its padding. It has no effect on a stream. */
const UDP_SIZE = 1232;

export class QueryPadder {
  #scratch = new Uint8Array(512);

  /**
   * Returns the query with padding at its end. It is unchanged if it has padding already, or other records beside OPT. A query
   * without OPT gets one. The result is valid until the next call.
   */
  pad(bytes: Uint8Array, length: number, questionEnd: number): Uint8Array {
    const query = length === bytes.length ? bytes : bytes.subarray(0, length);
    if (readU16(query, 6) !== 0 || readU16(query, 8) !== 0) return query;
    const additional = readU16(query, 10);
    const hasOpt = additional === 1 && isPlainOpt(query, questionEnd);
    if (!hasOpt && (additional !== 0 || questionEnd !== length)) return query;
    const optionAt = hasOpt ? length : length + OPT_OCTETS;
    const padding = (BLOCK - ((optionAt + OPTION_OCTETS) % BLOCK)) % BLOCK;
    const total = optionAt + OPTION_OCTETS + padding;
    if (total > 0xffff) return query;
    if (this.#scratch.length < total) this.#scratch = new Uint8Array(total);
    const padded = this.#scratch.subarray(0, total);
    padded.set(query);
    padded.fill(0, length);
    if (!hasOpt) {
      writeU16(padded, 10, 1);
      writeU16(padded, length + 1, RecordType.OPT);
      writeU16(padded, length + 3, UDP_SIZE);
    }
    const lengthAt = questionEnd + OPT_OCTETS - 2;
    writeU16(padded, lengthAt, readU16(padded, lengthAt) + OPTION_OCTETS + padding);
    writeU16(padded, optionAt, PADDING);
    writeU16(padded, optionAt + 2, padding);
    return padded;
  }
}

/** Whether OPT is the last record and has no padding. */
function isPlainOpt(query: Uint8Array, at: number): boolean {
  if (query.length < at + OPT_OCTETS || octetAt(query, at) !== 0) return false;
  if (readU16(query, at + 1) !== RecordType.OPT) return false;
  if (at + OPT_OCTETS + readU16(query, at + OPT_OCTETS - 2) !== query.length) return false;
  for (let option = at + OPT_OCTETS; option + OPTION_OCTETS <= query.length; ) {
    if (readU16(query, option) === PADDING) return false;
    option += OPTION_OCTETS + readU16(query, option + 2);
  }
  return true;
}
