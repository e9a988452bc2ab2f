import assert from "node:assert/strict";
import { isIP } from "node:net";
import { describe, it } from "node:test";
import fc from "fast-check";
import ipaddr from "ipaddr.js";
import {
  formatIpAddress,
  formatIpv4,
  formatIpv6,
  isIpv4Mapped,
  parseIpAddress,
  parseIpv4,
  parseIpv6,
  parseScopedIpAddress,
} from "./ip-address.ts";

const ipv4Octets = fc.uint8Array({ minLength: 4, maxLength: 4 });
const ipv6Octets = fc.oneof(
  fc.uint8Array({ minLength: 16, maxLength: 16 }),
  // Addresses with runs of zero groups, which random octets almost never have.
  fc
    .array(fc.constantFrom(0, 0, 0, 1, 0xab, 0xffff), { minLength: 8, maxLength: 8 })
    .map((groups) => Uint8Array.from(groups.flatMap((group) => [group >>> 8, group & 0xff]))),
  ipv4Octets.map((tail) => Uint8Array.of(...new Array<number>(10).fill(0), 0xff, 0xff, ...tail)),
);

describe("parseIpAddress", () => {
  const good: [text: string, octets: number[]][] = [
    ["0.0.0.0", [0, 0, 0, 0]],
    ["192.0.2.1", [192, 0, 2, 1]],
    ["255.255.255.255", [255, 255, 255, 255]],
    ["::", new Array<number>(16).fill(0)],
    ["::1", [...new Array<number>(15).fill(0), 1]],
    ["1::", [0, 1, ...new Array<number>(14).fill(0)]],
    ["2001:DB8::a", [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xa]],
    ["1:2:3:4:5:6:7::", [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 0]],
    ["::2:3:4:5:6:7:8", [0, 0, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]],
    ["1:2:3:4:5:6:7:8", [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]],
    ["0001:0002:3:4:5:6:7:8", [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]],
    ["::ffff:1.2.3.4", [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 1, 2, 3, 4]],
    ["64:ff9b::192.0.2.33", [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 33]],
    ["1:2:3:4:5:6:7.8.9.10", [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 7, 8, 9, 10]],
  ];
  for (const [text, octets] of good) {
    it(`reads ${text}`, () => assert.deepEqual(parseIpAddress(text), Uint8Array.from(octets)));
  }

  const bad = [
    "",
    " ",
    "1",
    "1.2.3",
    "1.2.3.4.5",
    "1.2.3.256",
    "1.2.3.04",
    "00.1.2.3",
    "1..2.3",
    "1.2.3.",
    ".1.2.3",
    "1.2.3.4 ",
    " 1.2.3.4",
    "1.2.3.4\n",
    "0x1.2.3.4",
    "1.2.3.4/8",
    ":",
    ":::",
    "1:",
    ":1",
    "::1:",
    "1::2::3",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "1:2:3:4:5:6:7:8::",
    "::1:2:3:4:5:6:7:8",
    "12345::",
    "g::",
    "::1.2.3",
    "1.2.3.4::",
    "::1.2.3.4:5",
    "::01.2.3.4",
    "::12ab.1.2.3",
    "1:2:3:4:5:6:7:1.2.3.4",
    "[::1]",
    "::1/64",
    "fe80::1%eth0",
    "fe80::1%",
    "example.org",
  ];
  for (const text of bad) {
    it(`refuses ${JSON.stringify(text)}`, () => assert.equal(parseIpAddress(text), undefined));
  }

  it("agrees with node:net about what is an address", () => {
    const alphabet = fc.constantFrom(...Array.from("0123456789abfF:::...g"));
    const addressLike = fc.oneof(
      fc.string({ unit: alphabet, maxLength: 46 }),
      // An address with one place changed tests the borders far more often than random characters do.
      fc
        .tuple(fc.oneof(fc.ipV4(), fc.ipV6()), fc.nat(45), alphabet)
        .map(([text, at, character]) => text.slice(0, at) + character + text.slice(at + 1)),
      fc.ipV4(),
      fc.ipV6(),
    );
    fc.assert(
      fc.property(addressLike, (text) => {
        assert.equal((parseIpv4(text) ? 4 : 0) + (parseIpv6(text) ? 6 : 0), isIP(text));
        assert.deepEqual(parseIpAddress(text), parseIpv4(text) ?? parseIpv6(text));
      }),
      { numRuns: 2000 },
    );
  });

  it("reads the same octets as ipaddr.js", () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
        // ipaddr.js takes "::192.0.2.1" for "::ffff:192.0.2.1"; RFC 4291 section 2.2 does not.
        fc.pre(!/^::[\d.]+$/.test(text));
        assert.deepEqual(parseIpAddress(text), Uint8Array.from(ipaddr.parse(text).toByteArray()));
      }),
      { numRuns: 500 },
    );
  });
});

describe("parseScopedIpAddress", () => {
  it("hands the zone back", () => {
    assert.deepEqual(parseScopedIpAddress("fe80::1%eth0"), { octets: parseIpv6("fe80::1"), zone: "eth0" });
    assert.deepEqual(parseScopedIpAddress("::1"), { octets: parseIpv6("::1"), zone: undefined });
    assert.deepEqual(parseScopedIpAddress("192.0.2.1"), { octets: parseIpv4("192.0.2.1"), zone: undefined });
  });

  it("refuses an empty zone, a zone on IPv4 and a zone without address", () => {
    for (const text of ["fe80::1%", "192.0.2.1%eth0", "%eth0", "nonsense%eth0"]) {
      assert.equal(parseScopedIpAddress(text), undefined, text);
    }
  });
});

describe("formatIpAddress", () => {
  const canonical: [text: string, printed: string][] = [
    ["2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
    ["2001:0db8::0001", "2001:db8::1"],
    ["2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
    ["2001:0:0:1:0:0:0:1", "2001:0:0:1::1"],
    ["1:0:0:0:0:0:0:0", "1::"],
    ["0:0:0:0:0:0:0:0", "::"],
    ["0:1:0:0:0:0:0:0", "0:1::"],
    ["0:0:1:2:3:4:5:6", "::1:2:3:4:5:6"],
    ["::ffff:c000:201", "::ffff:192.0.2.1"],
    ["::ffff:0:1.2.3.4", "::ffff:0:102:304"],
    ["::1.2.3.4", "::102:304"],
  ];
  for (const [text, printed] of canonical) {
    it(`prints ${text} as ${printed}`, () => {
      const octets = parseIpAddress(text);
      assert.ok(octets);
      assert.equal(formatIpAddress(octets), printed);
    });
  }

  it("refuses octets that are no address", () => {
    assert.throws(() => formatIpAddress(new Uint8Array(5)), RangeError);
  });

  it("prints what it reads again, and what ipaddr.js prints", () => {
    fc.assert(
      fc.property(fc.oneof(ipv4Octets, ipv6Octets), (octets) => {
        const text = formatIpAddress(octets);
        assert.deepEqual(parseIpAddress(text), octets);
        if (octets.length === 16 && isIpv4Mapped(octets)) return;
        const other = ipaddr.fromByteArray([...octets]);
        assert.equal(text, other instanceof ipaddr.IPv6 ? other.toRFC5952String() : other.toString());
      }),
      { numRuns: 2000 },
    );
  });

  it("prints from the middle of a message", () => {
    const message = Uint8Array.of(9, 192, 0, 2, 1, ...(parseIpv6("2001:db8::1") ?? []), 9);
    assert.equal(formatIpv4(message, 1), "192.0.2.1");
    assert.equal(formatIpv6(message, 5), "2001:db8::1");
  });
});
