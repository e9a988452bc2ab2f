import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Name } from "./name.ts";
import { fromHex } from "./octets.ts";
import { opaqueText, PresentationError } from "./rdata-scanner.ts";
import type { ResourceRecord } from "./record-kind.ts";
import * as table from "./record-table.ts";
import { canonicalData, dataFromWire, parseRecord, writeRecord } from "./resource-record.ts";
import { RecordType, type RecordTypeName, recordTypeName } from "./type-names.ts";
import { WireError } from "./wire-reader.ts";
import { WireWriter } from "./wire-writer.ts";

const parse = (type: string, text: string) => parseRecord(`owner.example. 300 IN ${type} ${text}`);

describe("RDATA text that is refused", () => {
  const cases: Record<string, string[]> = {
    A: ["", "192.0.2", "192.0.2.256", "192.0.2.01", "192.0.2.1 192.0.2.2", "2001:db8::1"],
    AAAA: ["192.0.2.1", "1::2::3", "fe80::1%eth0", ":"],
    NS: ["", "a..b", "a. b."],
    SOA: ["a. b. 1 2 3 4", "a. b. 4294967296 1 1 1 1", "a. b. 1 1x 1 1 1", "a. b. 1 7102w 1 1 1"],
    MX: ["10", "a.", "-1 a.", "65536 a.", "1.5 a."],
    TXT: ["", '"a', "a\\", "\\256"],
    HINFO: ["", `"${"x".repeat(255)}y" z`, `a ${"x".repeat(127)} ${"y".repeat(128)}`, "a\\"],
    WKS: ["10.0.0.1", "10.0.0.1 sctp 1", "10.0.0.1 256", "10.0.0.1 tcp 65536", "10.0.0.1 tcp smtp"],
    ISDN: ["", "1 2 3"],
    NSAP: ["47.00", "0x4", "0xgg"],
    ATMA: ["", "+", "+12a", "123", "12g4", "0 1234"],
    NXT: ["a. CAA", "a. TYPE128"],
    LOC: [
      "N 4 E 0m",
      "52.5 N 4 E 0m",
      "91 N 4 E 0m",
      "90 0 0.001 N 4 E 0m",
      "52 60 N 4 E 0m",
      "52 1.5 N 4 E 0m",
      "52 14 60 N 4 E 0m",
      "52 14 . N 4 E 0m",
      "52 14 05.1234567890123456 N 4 E 0m",
      "52 14 05 7 N 4 E 0m",
      "52 N 181 E 0m",
      "52 E 4 N 0m",
      "52 N 4 E",
      "52 N 4 E -100000.01m",
      "52 N 4 E 42849672.96m",
      "52 N 4 E 0m 90000000.01m",
      "52 N 4 E 0m -1m",
      "52 N 4 E 0m 0.001m",
      "52 N 4 E 0m +1m",
      "52 N 4 E m",
      "52 N 4 E .m",
      "52 N 4 E 1km",
      "52 N 4 E 0m 1m 1m 1m 1m",
    ],
    CERT: ["NONSENSE 0 0 AAAA", "PGP 0 0", "PGP 0 0 A", "65536 0 0 AAAA"],
    A6: ["129 a.", "0 1.2.3.4", "64 ::1", "0 ::1 a.", "128 :: a."],
    APL: [
      "192.0.2.0/24",
      "1:192.0.2.0",
      "1:192.0.2.0/33",
      "1:2001:db8::/32",
      "2:::/129",
      "3:0g/1",
      "65536:00/1",
    ],
    DS: ["60485 5 1", "60485 5 1 123", "60485 RSAMD6 1 AA", "60485 5 1 0x12"],
    SSHFP: ["1 1 zz"],
    IPSECKEY: ["10 1 2 2001:db8::1 AA==", "10 4 2 . AA==", "10 0 2 a. AA==", "10 1 2", "10 0 2 . A"],
    RRSIG: [
      "A 5 3 86400 20030230173103 20030220173103 1 a. AAAA",
      "A 5 3 86400 20031301000000 20030220173103 1 a. AAAA",
      "A 5 3 86400 20030101240000 20030220173103 1 a. AAAA",
      "A 5 3 86400 1969123123595 20030220173103 1 a. AAAA",
      "A 5 3 86400 19000229000000 20030220173103 1 a. AAAA",
      "A 5 3 86400 99999999999 20030220173103 1 a. AAAA",
      "NOTYPE 5 3 86400 1 1 1 a. AAAA",
      "A 5 3 86400 1 1 1 a.",
    ],
    NSEC: ["", "a. NOTYPE", "a. TYPE65536", "a. dſ"],
    DNSKEY: ["256 3 5", "256 3 5 A", "256 3 5 AB==", "256 3 5 AAA=A", "256 3 256 AAAA"],
    NSEC3: ["1 0 0 -", '1 0 0 - ""', "1 0 0 - zz", "1 0 0 - A", "1 0 0 0 CO", "1 0 65536 - CO"],
    HIP: ['2 "" AA==', "2 AA", '2 AA ""', `2 ${"AA".repeat(256)} AA==`],
    DSYNC: ["CDS NOTIFY 5300", "CDS NOTICE 5300 a."],
    UID: ["4294967296"],
    NID: ["10 1:2:3", "10 1:2:3:4:5", "10 12345:1:1:1", "10 :1:1:1"],
    L32: ["10 10.1.2"],
    EUI48: ["00-00-5e-00-53", "00:00:5e:00:53:2a", "0-0-5e-0-53-2a"],
    TSIG: ["a. 1 300 5 AQIDBA== 0 0 0", "a. 281474976710656 300 0 0 0 0", "a. 1 300 4"],
    CAA: ["0 issue", "256 issue a", `0 ${"a".repeat(256)} b`],
    DOA: ["0 0 0", '0 0 0 ""', '0 0 0 "" A'],
    AMTRELAY: ["10 2 1 192.0.2.1", "10 0 4 .", "10 0 128 .", "10 0 0 a.", "10 0 2 192.0.2.1"],
    IPN: ["18446744073709551616", "-1", "1.1"],
  };
  for (const [type, texts] of Object.entries(cases)) {
    for (const text of texts) {
      it(`${type} ${text.length > 60 ? `${text.slice(0, 60)}…` : text}`, () => {
        assert.throws(() => parse(type, text), PresentationError);
      });
    }
  }
});

describe("RDATA octets that are refused", () => {
  const location = "00 12 16 13 80000000 80000000 00989680";
  const cases: Record<string, string[]> = {
    A: ["010203", "0102030405"],
    AAAA: ["01".repeat(15), "01".repeat(17)],
    NS: ["0161", "01610000", "c000", "c00c", "016100c000"],
    SOA: ["0000", `0000${"00".repeat(19)}`, `0000${"00".repeat(21)}`],
    MX: ["00", "0001", "0001c000"],
    TXT: ["0161ff", "01"],
    WKS: [`0a00000106${"00".repeat(8193)}`, "0a000001"],
    ISDN: ["0131013201", "0131 0132 0133"],
    NXT: [`00${"00".repeat(17)}`],
    LOC: [
      location.replace("00", "01"),
      location.replace("12", "05"),
      location.replace("12", "a0"),
      location.replace("16", "1a"),
      location.replace("80000000", "934fd901"),
      location.replace("80000000 00989680", "e6ff0000 00989680"),
      location.slice(0, -2),
    ],
    A6: ["81", "8100", "7f"],
    APL: ["0001 21 01 0a", "0002 81 01 20", "0001 08 02 0a00", "0001 08 05 0102030405", "0001 08 01", "00"],
    IPSECKEY: ["0a0402", "0a010201", "0a0302"],
    NSEC: [
      "00 00 00",
      "00 00 01 00",
      "00 00 02 4000",
      `00 00 21 ${"01".repeat(33)}`,
      "00 01 01 40 00 01 40",
      "00 00 01 40 00 01 20",
      "00 00",
      "00 00 02 40",
    ],
    NSEC3: ["01 00 0000 00 00", "01 00 0000 01", "01 00 0000 00 02 11"],
    HIP: [
      "00 02 0001 01",
      "01 02 0000 01",
      "01 02 0002 01 02",
      "01 02 0001 01 02 c004",
      "01 02 0001 01 02 01",
    ],
    SVCB: [
      "0001",
      "0001 00 0003 0002 0035 0001 0003 026832",
      "0001 00 0003 0000 0003 0000",
      "0001 00 0003 0003 0035",
    ],
    EUI48: ["0102030405", "01020304050607"],
    TSIG: ["00 000000000001 012c 0005 01020304 0000 0000 0000"],
    CAA: ["00", "00 05 6973"],
    AMTRELAY: ["0a", "0a 84", "0a 01 0102"],
    IPN: ["01020304", "010203040506070809"],
  };
  for (const [type, list] of Object.entries(cases)) {
    for (const hex of list) {
      it(`${type} ${hex.length > 60 ? `${hex.slice(0, 60)}…` : hex}`, () => {
        const octets = fromHex(hex.replaceAll(" ", ""));
        assert.ok(octets);
        assert.throws(() => dataFromWire(RecordType[type as RecordTypeName], octets), WireError);
        assert.throws(() => parse(type, opaqueText(octets)), PresentationError);
      });
    }
  }
});

describe("data that cannot be encoded", () => {
  const { A, A6, APL, CAA, HIP, IPN, IPSECKEY, MX, NSEC, NXT, SOA, TSIG, TXT, WKS, EUI48, AAAA } = table;
  const root = Name.root;
  const long = new Uint8Array(256);
  const times = { refresh: 0, retry: 0, expire: 0, minimum: 0 };
  const records: [what: string, record: ResourceRecord][] = [
    ["an address of the other family", A.create(root, 0, { address: "::1" })],
    ["an address with a zone index", AAAA.create(root, 0, { address: "fe80::1%1" })],
    ["a number above its field", MX.create(root, 0, { preference: 65536, exchange: root })],
    ["a negative number", MX.create(root, 0, { preference: -1, exchange: root })],
    ["no number", MX.create(root, 0, { preference: Number.NaN, exchange: root })],
    [
      "a serial above 32 bits",
      SOA.create(root, 0, { primary: root, mailbox: root, serial: 2 ** 32, ...times }),
    ],
    ["a string above 255 octets", TXT.create(root, 0, { strings: [long] })],
    ["a tag above 255 octets", CAA.create(root, 0, { flags: 0, tag: long, value: long })],
    [
      "a tag above 255 octets of a host identity",
      HIP.create(root, 0, { algorithm: 2, hit: long, publicKey: long, servers: [] }),
    ],
    ["a type above 65535", NSEC.create(root, 0, { nextName: root, types: [65536] })],
    ["a type above 127", NXT.create(root, 0, { nextName: root, types: [128] })],
    ["a port above 65535", WKS.create(root, 0, { address: "192.0.2.1", protocol: 6, ports: [65536] })],
    ["too few octets", EUI48.create(root, 0, { address: new Uint8Array(5) })],
    [
      "a gateway of another type",
      IPSECKEY.create(root, 0, {
        precedence: 0,
        gatewayType: 1,
        algorithm: 0,
        gateway: "::1",
        publicKey: long,
      }),
    ],
    [
      "a gateway of no type",
      IPSECKEY.create(root, 0, {
        precedence: 0,
        gatewayType: 4,
        algorithm: 0,
        gateway: undefined,
        publicKey: long,
      }),
    ],
    [
      "a missing gateway",
      IPSECKEY.create(root, 0, {
        precedence: 0,
        gatewayType: 3,
        algorithm: 0,
        gateway: undefined,
        publicKey: long,
      }),
    ],
    ["a missing prefix name", A6.create(root, 0, { prefixLength: 64, suffix: "::1", prefixName: undefined })],
    [
      "a prefix above its family",
      APL.create(root, 0, {
        prefixes: [{ family: 1, prefixLength: 33, negated: false, address: new Uint8Array(0) }],
      }),
    ],
    [
      "a prefix with zeroes at its end",
      APL.create(root, 0, {
        prefixes: [{ family: 1, prefixLength: 8, negated: false, address: Uint8Array.of(10, 0) }],
      }),
    ],
    ["a number above 64 bits", IPN.create(root, 0, { cbheNumber: 2n ** 64n })],
    [
      "a time above 48 bits",
      TSIG.create(root, 0, {
        algorithm: root,
        timeSigned: 2 ** 48,
        fudge: 0,
        mac: long,
        originalId: 0,
        error: 0,
        otherData: long,
      }),
    ],
  ];
  for (const [what, record] of records) {
    it(`is refused with RangeError: ${what} in ${recordTypeName(record.type)}`, () => {
      assert.throws(() => writeRecord(new WireWriter(), record), RangeError);
      assert.throws(() => canonicalData(record), RangeError);
    });
  }
});
