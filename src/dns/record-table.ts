/**
 * The record table: one row per type. Formats are those of the RFC named in each row or group, or else of RFC 1035 section 3.3.
 * Rows whose fields depend on each other, or have another order in text than on the wire, are in the `record-table-*.ts` beside
 * this file.
 */
import {
  compressedName,
  ipv4,
  ipv6,
  mnemonic,
  numberOrMnemonic,
  plainName,
  recordTypeField,
  seconds,
  signatureTime,
  spelledName,
  u8,
  u16,
  u32,
  u48,
  u64,
} from "./fields.ts";
import {
  bareCharacterString,
  base32Field,
  base64OrDash,
  base64ToEnd,
  base64WithLength,
  characterString,
  characterStrings,
  fixedOctets,
  hexToEnd,
  lowTypeBitmap,
  optionalBase64ToEnd,
  optionalCharacterString,
  portBitmap,
  saltField,
  textToEnd,
  typeBitmap,
} from "./octet-fields.ts";
import type { RecordKind } from "./record-kind.ts";
import { record } from "./record-kind.ts";
import { a6, apl, atma, nsap } from "./record-table-addresses.ts";
import { amtRelay, hip, ipsecKey } from "./record-table-gateways.ts";
import { type HostInformation, parseHostInformation } from "./record-table-host.ts";
import { loc } from "./record-table-location.ts";
import { serviceParameters } from "./service-parameters.ts";
import { RecordType } from "./type-names.ts";

/** DNSSEC algorithms (RFC 4034 appendix A.1 and later RFCs). */
const algorithm = numberOrMnemonic(u8, {
  RSAMD5: 1,
  DH: 2,
  DSA: 3,
  RSASHA1: 5,
  "DSA-NSEC3-SHA1": 6,
  "RSASHA1-NSEC3-SHA1": 7,
  RSASHA256: 8,
  RSASHA512: 10,
  "ECC-GOST": 12,
  ECDSAP256SHA256: 13,
  ECDSAP384SHA384: 14,
  ED25519: 15,
  ED448: 16,
  INDIRECT: 252,
  PRIVATEDNS: 253,
  PRIVATEOID: 254,
});

const signature = {
  typeCovered: recordTypeField,
  algorithm,
  labels: u8,
  originalTtl: u32,
  expiration: signatureTime,
  inception: signatureTime,
  keyTag: u16,
  signerName: plainName,
  signature: base64ToEnd,
};
const publicKey = { flags: u16, protocol: u8, algorithm, publicKey: base64ToEnd };
const delegationSigner = { keyTag: u16, algorithm, digestType: u8, digest: hexToEnd };
const certificateAssociation = { usage: u8, selector: u8, matchingType: u8, data: hexToEnd };
const serviceBinding = { priority: u16, target: spelledName, parameters: serviceParameters };
const certificateType = mnemonic(u16, {
  PKIX: 1,
  SPKI: 2,
  PGP: 3,
  IPKIX: 4,
  ISPKI: 5,
  IPGP: 6,
  ACPKIX: 7,
  IACPKIX: 8,
  URI: 253,
  OID: 254,
});

export const A = record("A", RecordType.A, { address: ipv4 });
export const NS = record("NS", RecordType.NS, { nameServer: compressedName });
export const MD = record("MD", RecordType.MD, { agent: compressedName });
export const MF = record("MF", RecordType.MF, { agent: compressedName });
export const CNAME = record("CNAME", RecordType.CNAME, { target: compressedName });
/** `serial` is modulo 2^32 (RFC 1982), the four times are seconds. */
export const SOA = record("SOA", RecordType.SOA, {
  primary: compressedName,
  mailbox: compressedName,
  serial: u32,
  refresh: seconds,
  retry: seconds,
  expire: seconds,
  minimum: seconds,
});
export const MB = record("MB", RecordType.MB, { host: compressedName });
export const MG = record("MG", RecordType.MG, { member: compressedName });
export const MR = record("MR", RecordType.MR, { mailbox: compressedName });
export const WKS = record("WKS", RecordType.WKS, {
  address: ipv4,
  protocol: numberOrMnemonic(u8, { TCP: 6, UDP: 17 }),
  ports: portBitmap,
});
export const PTR = record("PTR", RecordType.PTR, { target: compressedName });
export const HINFO: RecordKind<HostInformation> = {
  ...record("HINFO", RecordType.HINFO, { cpu: characterString, os: characterString }),
  parseData: parseHostInformation,
};
export const MINFO = record("MINFO", RecordType.MINFO, {
  responsible: compressedName,
  errors: compressedName,
});
export const MX = record("MX", RecordType.MX, { preference: u16, exchange: compressedName });
export const TXT = record("TXT", RecordType.TXT, { strings: characterStrings });
/** RFC 1183. */
export const RP = record("RP", RecordType.RP, { mailbox: plainName, text: plainName });
export const AFSDB = record("AFSDB", RecordType.AFSDB, { subtype: u16, host: plainName });
export const X25 = record("X25", RecordType.X25, { address: characterString });
export const ISDN = record("ISDN", RecordType.ISDN, {
  address: characterString,
  subaddress: optionalCharacterString,
});
export const RT = record("RT", RecordType.RT, { preference: u16, host: plainName });
/** RFC 1706. */
export const NSAP = nsap;
export const NSAP_PTR = record("NSAP-PTR", RecordType["NSAP-PTR"], { owner: spelledName });
/** RFC 2535; RRSIG, DNSKEY and NSEC use the same formats. */
export const SIG = record("SIG", RecordType.SIG, signature);
export const KEY = record("KEY", RecordType.KEY, { ...publicKey, publicKey: optionalBase64ToEnd });
export const NXT = record("NXT", RecordType.NXT, { nextName: plainName, types: lowTypeBitmap });
/** RFC 2163. */
export const PX = record("PX", RecordType.PX, { preference: u16, map822: plainName, mapX400: plainName });
/** RFC 1712. */
export const GPOS = record("GPOS", RecordType.GPOS, {
  longitude: characterString,
  latitude: characterString,
  altitude: characterString,
});
/** RFC 3596. */
export const AAAA = record("AAAA", RecordType.AAAA, { address: ipv6 });
/** RFC 1876. */
export const LOC = loc;
export const EID = record("EID", RecordType.EID, { endpoint: hexToEnd });
export const NIMLOC = record("NIMLOC", RecordType.NIMLOC, { locator: hexToEnd });
/** RFC 2782. */
export const SRV = record("SRV", RecordType.SRV, {
  priority: u16,
  weight: u16,
  port: u16,
  target: plainName,
});
export const ATMA = atma;
/** RFC 3403. */
export const NAPTR = record("NAPTR", RecordType.NAPTR, {
  order: u16,
  preference: u16,
  flags: characterString,
  services: characterString,
  regexp: characterString,
  replacement: plainName,
});
/** RFC 2230. */
export const KX = record("KX", RecordType.KX, { preference: u16, exchanger: plainName });
/** RFC 4398. */
export const CERT = record("CERT", RecordType.CERT, {
  certificateType,
  keyTag: u16,
  algorithm,
  certificate: base64ToEnd,
});
/** RFC 2874, historic. */
export const A6 = a6;
/** RFC 6672. */
export const DNAME = record("DNAME", RecordType.DNAME, { target: plainName });
export const SINK = record("SINK", RecordType.SINK, {
  meaning: u8,
  coding: u8,
  subcoding: u8,
  data: base64ToEnd,
});
/** RFC 3123. */
export const APL = apl;
/** RFC 4034. */
export const DS = record("DS", RecordType.DS, delegationSigner);
/** RFC 4255. */
export const SSHFP = record("SSHFP", RecordType.SSHFP, {
  algorithm: u8,
  fingerprintType: u8,
  fingerprint: hexToEnd,
});
/** RFC 4025. */
export const IPSECKEY = ipsecKey;
export const RRSIG = record("RRSIG", RecordType.RRSIG, signature);
export const NSEC = record("NSEC", RecordType.NSEC, { nextName: spelledName, types: typeBitmap });
export const DNSKEY = record("DNSKEY", RecordType.DNSKEY, publicKey);
/** RFC 4701. */
export const DHCID = record("DHCID", RecordType.DHCID, { digest: base64ToEnd });
/** RFC 5155. */
export const NSEC3 = record("NSEC3", RecordType.NSEC3, {
  hashAlgorithm: u8,
  flags: u8,
  iterations: u16,
  salt: saltField,
  nextHash: base32Field,
  types: typeBitmap,
});
export const NSEC3PARAM = record("NSEC3PARAM", RecordType.NSEC3PARAM, {
  hashAlgorithm: u8,
  flags: u8,
  iterations: u16,
  salt: saltField,
});
/** RFC 6698, RFC 8162. */
export const TLSA = record("TLSA", RecordType.TLSA, certificateAssociation);
export const SMIMEA = record("SMIMEA", RecordType.SMIMEA, certificateAssociation);
/** RFC 8005. */
export const HIP = hip;
export const NINFO = record("NINFO", RecordType.NINFO, { strings: characterStrings });
export const RKEY = record("RKEY", RecordType.RKEY, publicKey);
export const TALINK = record("TALINK", RecordType.TALINK, { previous: spelledName, next: spelledName });
/** RFC 7344. */
export const CDS = record("CDS", RecordType.CDS, delegationSigner);
export const CDNSKEY = record("CDNSKEY", RecordType.CDNSKEY, publicKey);
/** RFC 7929. */
export const OPENPGPKEY = record("OPENPGPKEY", RecordType.OPENPGPKEY, { publicKey: base64ToEnd });
/** RFC 7477. */
export const CSYNC = record("CSYNC", RecordType.CSYNC, { serial: u32, flags: u16, types: typeBitmap });
/** RFC 8976. */
export const ZONEMD = record("ZONEMD", RecordType.ZONEMD, {
  serial: u32,
  scheme: u8,
  hashAlgorithm: u8,
  digest: hexToEnd,
});
/** RFC 9460. */
export const SVCB = record("SVCB", RecordType.SVCB, serviceBinding);
export const HTTPS = record("HTTPS", RecordType.HTTPS, serviceBinding);
/** RFC 9859. */
export const DSYNC = record("DSYNC", RecordType.DSYNC, {
  recordType: recordTypeField,
  scheme: mnemonic(u8, { NOTIFY: 1 }),
  port: u16,
  target: spelledName,
});
/** RFC 9886. */
export const HHIT = record("HHIT", RecordType.HHIT, { entity: base64ToEnd });
export const BRID = record("BRID", RecordType.BRID, { identification: base64ToEnd });
/** RFC 4408, replaced by TXT. */
export const SPF = record("SPF", RecordType.SPF, { strings: characterStrings });
export const UID = record("UID", RecordType.UID, { id: u32 });
export const GID = record("GID", RecordType.GID, { id: u32 });
/** RFC 6742. */
export const NID = record("NID", RecordType.NID, { preference: u16, nodeId: fixedOctets(8, ":", 2) });
export const L32 = record("L32", RecordType.L32, { preference: u16, locator: ipv4 });
export const L64 = record("L64", RecordType.L64, { preference: u16, locator: fixedOctets(8, ":", 2) });
export const LP = record("LP", RecordType.LP, { preference: u16, host: spelledName });
/** RFC 7043. */
export const EUI48 = record("EUI48", RecordType.EUI48, { address: fixedOctets(6, "-") });
export const EUI64 = record("EUI64", RecordType.EUI64, { address: fixedOctets(8, "-") });
/** RFC 2930. */
export const TKEY = record("TKEY", RecordType.TKEY, {
  algorithm: spelledName,
  inception: u32,
  expiration: u32,
  mode: u16,
  error: u16,
  key: base64WithLength,
  otherData: base64WithLength,
});
/** RFC 8945. */
export const TSIG = record("TSIG", RecordType.TSIG, {
  algorithm: spelledName,
  timeSigned: u48,
  fudge: u16,
  mac: base64WithLength,
  originalId: u16,
  error: u16,
  otherData: base64WithLength,
});
/** RFC 7553. */
export const URI = record("URI", RecordType.URI, { priority: u16, weight: u16, target: textToEnd });
/** RFC 8659. */
export const CAA = record("CAA", RecordType.CAA, { flags: u8, tag: bareCharacterString, value: textToEnd });
export const AVC = record("AVC", RecordType.AVC, { strings: characterStrings });
export const DOA = record("DOA", RecordType.DOA, {
  enterprise: u32,
  objectType: u32,
  location: u8,
  mediaType: characterString,
  data: base64OrDash,
});
/** RFC 8777. */
export const AMTRELAY = amtRelay;
/** RFC 9606. */
export const RESINFO = record("RESINFO", RecordType.RESINFO, { strings: characterStrings });
export const WALLET = record("WALLET", RecordType.WALLET, { strings: characterStrings });
export const CLA = record("CLA", RecordType.CLA, { strings: characterStrings });
/** The 64 bits of a CBHE node number. */
export const IPN = record("IPN", RecordType.IPN, { cbheNumber: u64 });
export const TA = record("TA", RecordType.TA, delegationSigner);
/** RFC 4431. */
export const DLV = record("DLV", RecordType.DLV, delegationSigner);

/** Every row, in the order of the table. OPT has none: it is not data but part of the message (RFC 6891). */
export const recordKinds: readonly RecordKind<unknown>[] = [
  A,
  NS,
  MD,
  MF,
  CNAME,
  SOA,
  MB,
  MG,
  MR,
  WKS,
  PTR,
  HINFO,
  MINFO,
  MX,
  TXT,
  RP,
  AFSDB,
  X25,
  ISDN,
  RT,
  NSAP,
  NSAP_PTR,
  SIG,
  KEY,
  PX,
  GPOS,
  AAAA,
  LOC,
  NXT,
  EID,
  NIMLOC,
  SRV,
  ATMA,
  NAPTR,
  KX,
  CERT,
  A6,
  DNAME,
  SINK,
  APL,
  DS,
  SSHFP,
  IPSECKEY,
  RRSIG,
  NSEC,
  DNSKEY,
  DHCID,
  NSEC3,
  NSEC3PARAM,
  TLSA,
  SMIMEA,
  HIP,
  NINFO,
  RKEY,
  TALINK,
  CDS,
  CDNSKEY,
  OPENPGPKEY,
  CSYNC,
  ZONEMD,
  SVCB,
  HTTPS,
  DSYNC,
  HHIT,
  BRID,
  SPF,
  UID,
  GID,
  NID,
  L32,
  L64,
  LP,
  EUI48,
  EUI64,
  TKEY,
  TSIG,
  URI,
  CAA,
  AVC,
  DOA,
  AMTRELAY,
  RESINFO,
  WALLET,
  CLA,
  IPN,
  TA,
  DLV,
];

/** The row of a type, `undefined` for a type without one. */
export function recordKind(type: number): RecordKind<unknown> | undefined {
  return KINDS.get(type);
}

const KINDS: ReadonlyMap<number, RecordKind<unknown>> = new Map(recordKinds.map((kind) => [kind.type, kind]));
