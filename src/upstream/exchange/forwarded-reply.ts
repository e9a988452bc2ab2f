/** Turns an upstream's answer into a reply to the client. */
import { readOptions } from "../../dns/edns.ts";
import {
  type Edns,
  EdnsOptionCode,
  EncodedSections,
  Flag,
  type ScannedMessage,
  WireError,
  WireReader,
} from "../../dns/index.ts";
import { octetAt, readU16 } from "../../dns/octets.ts";
import { findSections, UNUSUAL } from "../../dns/usual-sections.ts";
import type { PooledBuffer } from "../../lib/collections/buffer-pool.ts";
import type { CounterSlot } from "../../lib/metrics/metric-slots.ts";
import type { FramePool } from "../../plugin/packed/frames.ts";
import type { Query } from "../../plugin/query/query.ts";
import { Reply } from "../../plugin/query/reply.ts";
import { isBareError } from "./exchange.ts";

/**
 * Parses the records, too, so that malformed ones are the upstream's fault and not a plugin's.
 * @param octets header and question match `query`
 * @param isDatagram whether it may be truncated
 * @param isPadded whether queries are padded, for which those without OPT get one
 * @param lent the owner of the octets, if not the reply: they are returned together with the reply
 * @param irregular counts replies whose counts and octets do not match
 * @throws WireError
 */
export function replyFrom(
  octets: Uint8Array,
  query: Query,
  isDatagram: boolean,
  isPadded: boolean,
  irregular?: CounterSlot,
  lent?: PooledBuffer,
): Reply {
  const flags = readU16(octets, 2);
  if (isBareError(octets, octets.length)) {
    const bare = query.reply({ rcode: flags & 0xf });
    bare.flags = flags & PASSED_FLAGS;
    return bare;
  }
  const scanned = scan(octets, query, isDatagram);
  if (scanned === undefined) return query.reply({ truncated: true });
  scanned.encoded.checkData();
  if (scanned.irregular) irregular?.increment();
  const reply = query.reply({
    rcode: (flags & 0xf) | (scanned.extendedRcodeBits << 4),
    encoded: scanned.encoded,
  });
  // A newly encoded reply has octets of its own.
  if (scanned.encoded.bytes === octets) scanned.encoded.lender = lent;
  reply.flags = flags & PASSED_FLAGS;
  reply.edns = readEdns(octets, scanned.optOffset, query, isPadded);
  return reply;
}

/**
 * Like {@link replyFrom}, for the first octets of a buffer that is reused as soon as this returns. Copies them to a buffer lent to
 * the reply, and makes no objects of its records.
 * @returns `undefined` for unusual replies, which are left to `replyFrom`
 */
export function lentReply(
  buffer: Uint8Array,
  length: number,
  query: Query,
  isPadded: boolean,
  frames: FramePool,
): Reply | undefined {
  const { questionEnd } = query;
  if (length < questionEnd) return undefined;
  const records = readU16(buffer, 6) + readU16(buffer, 8) + readU16(buffer, 10);
  if (records * LEAST_RECORD > length - questionEnd) return undefined;
  const frame = frames.take(length, records);
  const { sections } = frame;
  const { bytes } = sections;
  if (length > SHORT_COPY) bytes.set(buffer.subarray(0, length));
  else for (let at = 0; at < length; at++) bytes[at] = octetAt(buffer, at);
  const optOffset = findSections(sections, length, questionEnd);
  const reply = optOffset === UNUSUAL ? undefined : soundReply(sections, optOffset, query, isPadded);
  if (reply === undefined) frame.takeBack();
  return reply;
}

/** Octets of the smallest record. */
const LEAST_RECORD = 11;
/** Below this, a loop copies faster than a call. */
const SHORT_COPY = 256;

/** @returns `undefined` if RDATA or an EDNS option is malformed */
function soundReply(
  sections: EncodedSections,
  optOffset: number,
  query: Query,
  isPadded: boolean,
): Reply | undefined {
  const { bytes } = sections;
  const flags = readU16(bytes, 2);
  const extendedRcodeBits = optOffset < 0 ? 0 : octetAt(bytes, optOffset + 4);
  try {
    sections.checkData();
    const rcode = (flags & 0xf) | (extendedRcodeBits << 4);
    const reply = Reply.fromEncoded(query, sections, rcode, flags & PASSED_FLAGS);
    if (optOffset >= 0) reply.edns = readEdns(bytes, optOffset, query, isPadded);
    return reply;
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
}

const PASSED_FLAGS = Flag.AA | Flag.TC | Flag.RA | Flag.AD;

/**
 * `undefined` for a datagram that ends before its records do: the client should retry over TCP
 * (docs/spec/coredns-behaviour.md#upstream-connections).
 */
function scan(octets: Uint8Array, query: Query, isDatagram: boolean): ScannedMessage | undefined {
  try {
    return EncodedSections.scan(octets, octets.length, true);
  } catch (error) {
    if (!isDatagram || !(error instanceof WireError) || error.code !== "SHORT_INPUT") throw error;
    query.trace?.note(`the reply of ${octets.length} octets is cut off`);
    return undefined;
  }
}

/**
 * OPT of the reply. Padding only concerns the two servers (RFC 7830 section 3). Without other options OPT is dropped, because the
 * server fits the rest to the client.
 */
function readEdns(octets: Uint8Array, optOffset: number, query: Query, isPadded: boolean): Edns | undefined {
  // A query without OPT got one for its padding. The OPT in the reply is not for the client.
  if (optOffset < 0 || (isPadded && !query.hasEdns)) return undefined;
  const length = readU16(octets, optOffset + 8);
  if (length === 0 && query.root.hasEdns && !query.root.compactOk) return PLAIN_EDNS;
  const options = readOptions(new WireReader(octets, optOffset + 10), length);
  return {
    udpSize: readU16(octets, optOffset + 2),
    version: octetAt(octets, optOffset + 5),
    dnssecOk: (octetAt(octets, optOffset + 6) & 0x80) !== 0,
    ...((octetAt(octets, optOffset + 6) & 0x40) !== 0 && { compactOk: true }),
    options: isPadded ? options.filter(({ code }) => code !== EdnsOptionCode.PADDING) : options,
  };
}

const PLAIN_EDNS: Edns = Object.freeze({
  udpSize: 1232,
  version: 0,
  dnssecOk: false,
  options: Object.freeze([]),
});
