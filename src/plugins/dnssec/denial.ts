/** NSEC records made for one question: black lies, and compact denial of existence (RFC 9824). */
import { Name, NSEC, RecordType, type ResourceRecord } from "../../dns/index.ts";

/** Marks a name that does not exist in the type bit map (RFC 9824 section 3.5). */
export const NXNAME = 128;

const T = RecordType;
const AT_A_NAME = [
  T.A,
  T.HINFO,
  T.TXT,
  T.AAAA,
  T.LOC,
  T.SRV,
  T.CERT,
  T.SSHFP,
  T.RRSIG,
  T.NSEC,
  T.TLSA,
  T.HIP,
  T.OPENPGPKEY,
  T.SPF,
];
const AT_THE_APEX = [...AT_A_NAME, T.NS, T.SOA, T.MX, T.DNSKEY];
const AT_A_DELEGATION = [...AT_A_NAME, T.NS];

/** Denies one type of a name, and may claim all others. */
export function blackLie(name: Name, isApex: boolean, type: number, ttl: number): ResourceRecord {
  const types = isApex ? AT_THE_APEX : type === T.DS ? AT_A_DELEGATION : AT_A_NAME;
  return NSEC.create(name, ttl, { nextName: successor(name), types: without(types, type) });
}

/** Denies the existence of a name. */
export function compactDenial(name: Name, ttl: number): ResourceRecord {
  return NSEC.create(name, ttl, { nextName: successor(name), types: [T.RRSIG, T.NSEC, NXNAME] });
}

/** Proves that a delegation has no DS records. */
export function unsignedDelegation(name: Name, ttl: number): ResourceRecord {
  return NSEC.create(name, ttl, { nextName: successor(name), types: [T.NS, T.RRSIG, T.NSEC] });
}

/** The next name in canonical order. */
function successor(name: Name): Name {
  const { wire } = name;
  // At the limit of 255 octets no name fits below: use one that follows all names of the label.
  if (wire.length + 2 > 255) return lastSibling(name);
  const octets = new Uint8Array(wire.length + 2);
  octets[0] = 1;
  octets.set(wire, 2);
  return Name.fromCheckedWire(octets);
}

/** The name with its first label one octet shorter and larger: no name lies between. */
function lastSibling(name: Name): Name {
  const wire = name.folded.slice();
  const length = wire[0] ?? 0;
  for (let at = length; at > 0; at--) {
    const octet = wire[at] ?? 0;
    if (octet === 0xff) continue;
    wire[at] = octet === 0x40 ? 0x5b : octet + 1;
    return Name.fromCheckedWire(wire);
  }
  return name.parent ?? name;
}

function without(types: readonly number[], type: number): number[] {
  // The NSEC record itself exists, even for a query for NSEC.
  return types.filter((other) => other !== type || type === T.NSEC).sort((one, other) => one - other);
}
