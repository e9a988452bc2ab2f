/** What an upstream says, as a reply to the client. */
import { readOptions } from "../dns/edns.ts";
import {
  type Edns,
  EdnsOptionCode,
  EncodedSections,
  Flag,
  type ScannedMessage,
  WireError,
  WireReader,
} from "../dns/index.ts";
import { octetAt, readU16 } from "../dns/octets.ts";
import type { PooledBuffer } from "../lib/buffer-pool.ts";
import type { CounterSlot } from "../lib/metric-slots.ts";
import type { Query, Reply } from "../plugin/index.ts";
import { isBareError } from "./exchange.ts";

/**
 * Reads the records, too, so that malformed ones are the upstream's fault and no plugin's.
 * @param octets header and question are those of a reply to `query`
 * @param isDatagram it may be cut off
 * @param isPadded queries are padded, for which those without OPT are given one
 * @param lent whose octets they are, if not the reply's own: it is given back with the reply
 * @param irregular counts replies whose counts and octets do not fit together
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
  // What was encoded anew has octets of its own.
  if (scanned.encoded.bytes === octets) scanned.encoded.lender = lent;
  reply.flags = flags & PASSED_FLAGS;
  reply.edns = readEdns(octets, scanned, query, isPadded);
  return reply;
}

const PASSED_FLAGS = Flag.AA | Flag.TC | Flag.RA | Flag.AD;

/** `undefined` for a datagram that ends before its records do: the client is to ask again over TCP (CoreDNS facts 1.22). */
function scan(octets: Uint8Array, query: Query, isDatagram: boolean): ScannedMessage | undefined {
  try {
    return EncodedSections.scan(octets, octets.length, true);
  } catch (error) {
    if (!isDatagram || !(error instanceof WireError) || error.code !== "SHORT_INPUT") throw error;
    query.trace?.note(`the reply of ${octets.length} octets is cut off`);
    return undefined;
  }
}

/** OPT of the reply. Padding is between two servers and no further (RFC 7830 section 3). Where it holds no options nothing in it is of use, as the server fits the rest to the client. */
function readEdns(
  octets: Uint8Array,
  { optOffset }: ScannedMessage,
  query: Query,
  isPadded: boolean,
): Edns | undefined {
  // A query without OPT was given one for its padding: the one in the reply is no business of the client.
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
