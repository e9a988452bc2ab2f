/** The EDNS option that a DoQ client must not send (RFC 9250 section 5.5.2). */
import { EdnsOptionCode, findOption, readOpt } from "../../dns/edns.ts";
import { readU16 } from "../../dns/octets.ts";
import { RecordType } from "../../dns/type-names.ts";
import { WireReader } from "../../dns/wire-reader.ts";

const HEADER = 12;

/** Whether a query has edns-tcp-keepalive. A malformed query is left to the full parser. */
export function hasKeepalive(message: Uint8Array): boolean {
  const records = readU16(message, 6) + readU16(message, 8) + readU16(message, 10);
  if (records === 0) return false;
  try {
    const reader = new WireReader(message, HEADER);
    for (let left = readU16(message, 4); left > 0; left--) {
      reader.skipName();
      reader.skip(4);
    }
    for (let left = records; left > 0; left--) {
      reader.skipName();
      if (reader.u16() === RecordType.OPT)
        return findOption(readOpt(reader).edns.options, EdnsOptionCode.TCP_KEEPALIVE) !== undefined;
      reader.skip(6);
      reader.skip(reader.u16());
    }
  } catch {
    return false;
  }
  return false;
}
