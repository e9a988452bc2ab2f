/**
 * Decides from the 12 octets of the header alone which messages to accept (docs/spec/coredns-behaviour.md#admission).
 */
import { Flag, Opcode, opcodeOf, Rcode } from "../../dns/numbers.ts";
import { readU16, writeU16 } from "../../dns/octets.ts";

export const Admission = {
  /** Read on. */
  ACCEPT: 0,
  /** Drop silently. */
  IGNORE: 1,
  /** Answer FORMERR. */
  FORMAT_ERROR: 2,
  /** Answer NOTIMP. */
  NOT_IMPLEMENTED: 3,
} as const;

export type AdmissionVerdict = (typeof Admission)[keyof typeof Admission];

const HEADER_OCTETS = 12;

/**
 * @param takesUpdates whether a block of the listener accepts dynamic updates (RFC 2136), whose sections may have any
 * number of records
 */
export function admit(bytes: Uint8Array, length: number, takesUpdates = false): AdmissionVerdict {
  if (length < HEADER_OCTETS) return Admission.IGNORE;
  const flags = readU16(bytes, 2);
  if ((flags & Flag.QR) !== 0) return Admission.IGNORE;
  const opcode = opcodeOf(flags);
  if (opcode === Opcode.UPDATE && takesUpdates)
    return readU16(bytes, 4) === 1 ? Admission.ACCEPT : Admission.FORMAT_ERROR;
  if (opcode !== Opcode.QUERY && opcode !== Opcode.NOTIFY) return Admission.NOT_IMPLEMENTED;
  const [questions, answers, authorities, additionals] = [
    readU16(bytes, 4),
    readU16(bytes, 6),
    readU16(bytes, 8),
    readU16(bytes, 10),
  ];
  if (questions !== 1 || answers > 1 || authorities > 1 || additionals > 2) return Admission.FORMAT_ERROR;
  return Admission.ACCEPT;
}

/** Writes the bare header that answers a rejected message, and returns its length. */
export function writeRejection(bytes: Uint8Array, verdict: AdmissionVerdict, out: Uint8Array): number {
  const flags = readU16(bytes, 2);
  const notImplemented = verdict === Admission.NOT_IMPLEMENTED;
  const rcode = notImplemented ? Rcode.NOTIMP : Rcode.FORMERR;
  const opcode = notImplemented ? opcodeOf(flags) : Opcode.QUERY;
  writeU16(out, 0, readU16(bytes, 0));
  writeU16(out, 2, Flag.QR | (opcode << 11) | (flags & (Flag.RD | Flag.CD)) | rcode);
  out.fill(0, 4, HEADER_OCTETS);
  return HEADER_OCTETS;
}

export const REJECTION_OCTETS = HEADER_OCTETS;
