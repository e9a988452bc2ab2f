import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  type ClientSubnet,
  decodeClientSubnet,
  decodeCookie,
  decodeExpire,
  decodeExtendedError,
  decodeTcpKeepalive,
  type Edns,
  EdnsOptionCode,
  ExtendedErrorCode,
  encodeClientSubnet,
  extendedError,
  findOption,
  formatOption,
  OPT_FIXED_OCTETS,
  padding,
  readOpt,
  readOptions,
  writeOpt,
} from "./edns.ts";
import { fromHex, toHex } from "./octets.ts";
import { WireError, WireReader } from "./wire-reader.ts";
import { WireWriter } from "./wire-writer.ts";

function hex(text: string): Uint8Array {
  const octets = fromHex(text.replaceAll(" ", ""));
  assert.ok(octets, text);
  return octets;
}

describe("the OPT record", () => {
  const edns: Edns = {
    udpSize: 1232,
    version: 0,
    dnssecOk: true,
    options: [
      { code: EdnsOptionCode.NSID, data: new Uint8Array(0) },
      { code: 65001, data: hex("0102") },
    ],
  };

  it("is encoded as in RFC 6891 section 6.1.2", () => {
    const writer = new WireWriter();
    writeOpt(writer, edns, 0xabc);
    assert.equal(
      toHex(writer.finish()),
      "00 0029 04d0 ab 00 8000 000a 0003 0000 fde9 0002 0102".replaceAll(" ", ""),
    );
    const bare = new WireWriter();
    writeOpt(bare, { ...edns, options: [] }, 0);
    assert.equal(bare.offset, OPT_FIXED_OCTETS);
  });

  it("reads back, with the upper bits of the rcode", () => {
    const writer = new WireWriter();
    writeOpt(writer, edns, 0xabc);
    assert.deepEqual(readOpt(new WireReader(writer.finish(), 3)), { edns, extendedRcodeBits: 0xab });
  });

  it("has two flags, DO and CO", () => {
    const read = (flags: string) => readOpt(new WireReader(hex(`0200 00 01 ${flags} 0000`))).edns;
    const none = { udpSize: 512, version: 1, dnssecOk: false, options: [] };
    assert.deepEqual(read("3fff"), none);
    assert.deepEqual(read("8000"), { ...none, dnssecOk: true });
    assert.deepEqual(read("4000"), { ...none, compactOk: true });
  });

  it("is refused if its options do not fill it", () => {
    for (const rdata of ["0001 00", "0003 000300", "0004 0003 0001", "0005 0003 0000 00", "0004 0003"])
      assert.throws(() => readOpt(new WireReader(hex(`0200 00 00 0000 ${rdata}`))), WireError, rdata);
    // Options must not take octets of the following record.
    assert.throws(() => readOptions(new WireReader(hex("0003 0002 aaaa bbbb")), 5), WireError);
  });

  it("finds the first option of a code", () => {
    assert.equal(findOption(edns.options, 65001), edns.options[1]);
    assert.equal(findOption(edns.options, 10), undefined);
  });
});

describe("client subnet (RFC 7871)", () => {
  const good: [octets: string, subnet: ClientSubnet][] = [
    ["0001 18 00 c00002", { family: 1, sourcePrefixLength: 24, scopePrefixLength: 0, address: "192.0.2.0" }],
    ["0001 15 18 c00008", { family: 1, sourcePrefixLength: 21, scopePrefixLength: 24, address: "192.0.8.0" }],
    [
      "0001 20 20 c0000201",
      { family: 1, sourcePrefixLength: 32, scopePrefixLength: 32, address: "192.0.2.1" },
    ],
    ["0001 00 00", { family: 1, sourcePrefixLength: 0, scopePrefixLength: 0, address: "0.0.0.0" }],
    [
      "0002 38 30 20010db8000001",
      { family: 2, sourcePrefixLength: 56, scopePrefixLength: 48, address: "2001:db8:0:100::" },
    ],
    ["0002 00 00", { family: 2, sourcePrefixLength: 0, scopePrefixLength: 0, address: "::" }],
    ["0000 00 00", { family: 0, sourcePrefixLength: 0, scopePrefixLength: 0, address: "0.0.0.0" }],
  ];
  for (const [octets, subnet] of good) {
    it(`${subnet.address}/${subnet.sourcePrefixLength} of family ${subnet.family} is ${octets}`, () => {
      assert.deepEqual(decodeClientSubnet(hex(octets)), subnet);
      assert.deepEqual(encodeClientSubnet(subnet), { code: EdnsOptionCode.CLIENT_SUBNET, data: hex(octets) });
    });
  }

  const bad = [
    ["", "no octets"],
    ["0001 18", "too few octets"],
    ["0001 18 00 c000", "an address cut off"],
    ["0001 18 00 c0000200", "more octets than the prefix needs"],
    ["0001 17 00 c00003", "a bit behind the prefix"],
    ["0001 21 00 c000020100", "a prefix above 32 for IPv4"],
    ["0001 18 21 c00002", "a scope above 32 for IPv4"],
    [`0002 81 00 ${"00".repeat(17)}`, "a prefix above 128 for IPv6"],
    ["0003 08 00 01", "an unknown family"],
    ["0000 08 00 01", "a prefix without family"],
    ["0000 00 01", "a scope without family"],
  ] as const;
  for (const [octets, what] of bad) {
    it(`is not ${what}`, () => assert.equal(decodeClientSubnet(hex(octets)), undefined));
  }

  it("zeroes the bits after the prefix, and refuses invalid values", () => {
    const subnet = { family: 1, sourcePrefixLength: 20, scopePrefixLength: 0, address: "192.0.255.255" };
    assert.equal(toHex(encodeClientSubnet(subnet)?.data ?? new Uint8Array(0)), "00011400c000f0");
    for (const change of [
      { family: 2 },
      { family: 3 },
      { family: 0 },
      { address: "::1" },
      { address: "nonsense" },
      { sourcePrefixLength: 33 },
      { scopePrefixLength: 33 },
    ])
      assert.equal(encodeClientSubnet({ ...subnet, ...change }), undefined, JSON.stringify(change));
  });

  it("survives encoding and decoding", () => {
    const data = fc
      .tuple(
        fc.constantFrom(1, 2),
        fc.integer({ min: 0, max: 128 }),
        fc.nat(32),
        fc.uint8Array({ minLength: 16, maxLength: 16 }),
      )
      .map(([family, source, scope, address]) => {
        const prefix = family === 1 ? source % 33 : source;
        const octets = address.subarray(0, Math.ceil(prefix / 8));
        if (prefix % 8 !== 0) octets[octets.length - 1] = (octets.at(-1) ?? 0) & (0xff << (8 - (prefix % 8)));
        return Uint8Array.of(0, family, prefix, scope, ...octets);
      });
    fc.assert(
      fc.property(data, (data) => {
        const subnet = decodeClientSubnet(data);
        assert.ok(subnet);
        assert.deepEqual(encodeClientSubnet(subnet)?.data, data);
      }),
    );
  });
});

describe("other options", () => {
  it("extended errors have a code and a text (RFC 8914)", () => {
    const option = extendedError(ExtendedErrorCode.STALE_ANSWER, "zu spät");
    assert.deepEqual(option, { code: 15, data: hex("0003 7a752073 70c3a474") });
    assert.deepEqual(decodeExtendedError(option.data), { infoCode: 3, text: "zu spät" });
    assert.deepEqual(decodeExtendedError(extendedError(49152).data), { infoCode: 49152, text: "" });
    assert.equal(decodeExtendedError(hex("00")), undefined);
    assert.deepEqual(decodeExtendedError(hex("0000 ff")), { infoCode: 0, text: "\ufffd" });
  });

  it("cookies have 8 octets of the client, then none or 8 to 32 of the server (RFC 7873)", () => {
    const lengths = Array.from({ length: 50 }, (_, length) => length).filter((length) => {
      const cookie = decodeCookie(new Uint8Array(length));
      if (cookie !== undefined) assert.equal(cookie.client.length + cookie.server.length, length);
      return cookie !== undefined;
    });
    assert.deepEqual(lengths, [8, ...Array.from({ length: 25 }, (_, index) => 16 + index)]);
  });

  it("keepalive and expire have a value or none (RFC 7828, RFC 7314)", () => {
    assert.deepEqual(decodeTcpKeepalive(hex("")), { timeout: undefined });
    assert.deepEqual(decodeTcpKeepalive(hex("012c")), { timeout: 300 });
    assert.equal(decodeTcpKeepalive(hex("01")), undefined);
    assert.deepEqual(decodeExpire(hex("")), { expire: undefined });
    assert.deepEqual(decodeExpire(hex("fffffffe")), { expire: 4294967294 });
    assert.equal(decodeExpire(hex("0001")), undefined);
  });

  it("padding is zeroes (RFC 7830)", () => {
    assert.deepEqual(padding(3), { code: 12, data: hex("000000") });
  });
});

describe("formatOption", () => {
  const cases: [code: number, octets: string, text: string][] = [
    [EdnsOptionCode.NSID, "6e73312201", 'NSID: 6e73312201 ("ns1\\"\\001")'],
    [EdnsOptionCode.CLIENT_SUBNET, "0001 18 00 c00002", "CLIENT-SUBNET: 192.0.2.0/24/0"],
    [EdnsOptionCode.CLIENT_SUBNET, "0001 18 00 c0", "CLIENT-SUBNET: 00011800c0"],
    [EdnsOptionCode.EXTENDED_ERROR, "0012", "EXTENDED-ERROR: 18"],
    [EdnsOptionCode.EXTENDED_ERROR, "0012 6e6f0a", "EXTENDED-ERROR: 18 (no\\010)"],
    [EdnsOptionCode.EXTENDED_ERROR, "00", "EXTENDED-ERROR: 00"],
    [EdnsOptionCode.TCP_KEEPALIVE, "", "TCP-KEEPALIVE:"],
    [EdnsOptionCode.TCP_KEEPALIVE, "012d", "TCP-KEEPALIVE: 30.1 secs"],
    [EdnsOptionCode.EXPIRE, "", "EXPIRE:"],
    [EdnsOptionCode.EXPIRE, "00000e10", "EXPIRE: 3600"],
    [EdnsOptionCode.PADDING, "0000", "PADDING: 2 octets"],
    [EdnsOptionCode.KEY_TAG, "4f66 0001", "KEY-TAG: 20326 1"],
    [EdnsOptionCode.KEY_TAG, "4f", "KEY-TAG: 4f"],
    [EdnsOptionCode.COOKIE, "0102030405060708", "COOKIE: 0102030405060708"],
    [65001, "ab", "OPT=65001: ab"],
    [65001, "", "OPT=65001:"],
  ];
  for (const [code, octets, text] of cases) {
    it(text, () => assert.equal(formatOption({ code, data: hex(octets) }), text));
  }

  it("prints any option in one line of ASCII", () => {
    fc.assert(
      fc.property(fc.nat(20), fc.uint8Array({ maxLength: 40 }), (code, data) => {
        assert.match(formatOption({ code, data }), /^[ -~]+$/);
      }),
    );
  });
});
