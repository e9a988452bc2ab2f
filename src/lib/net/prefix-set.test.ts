import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { formatIpAddress, parseIpAddress } from "./ip-address.ts";
import { IpPrefixError, PrefixSet, parseIpPrefix } from "./prefix-set.ts";

describe("parseIpPrefix", () => {
  const good: [text: string, address: string, length: number][] = [
    ["192.0.2.1", "192.0.2.1", 32],
    ["192.0.2.129/25", "192.0.2.128", 25],
    ["10.1.2.3/8", "10.0.0.0", 8],
    ["10.1.2.3/08", "10.0.0.0", 8],
    ["1.2.3.4/0", "0.0.0.0", 0],
    ["::1", "::1", 128],
    ["2001:db8:ffff::1/35", "2001:db8:e000::", 35],
    ["::ffff:192.0.2.1/120", "192.0.2.0", 24],
    ["::ffff:192.0.2.1", "192.0.2.1", 32],
    ["::ffff:0:0/95", "::fffe:0:0", 95],
  ];
  for (const [text, address, length] of good) {
    it(`reads ${text}`, () => {
      const prefix = parseIpPrefix(text);
      assert.ok(prefix);
      assert.deepEqual([formatIpAddress(prefix.octets), prefix.length], [address, length]);
    });
  }

  for (const text of [
    "",
    "/",
    "/8",
    "10/8",
    "10.0.0.0/",
    "10.0.0.0/33",
    "::/129",
    "10.0.0.0/-1",
    "10.0.0.0/8/8",
  ]) {
    it(`refuses ${JSON.stringify(text)}`, () => assert.equal(parseIpPrefix(text), undefined));
  }
  for (const text of [
    "10.0.0.0/1e1",
    "10.0.0.0/ 8",
    "10.0.0.0/255.0.0.0",
    "fe80::1%eth0/64",
    "example.org/8",
  ]) {
    it(`refuses ${JSON.stringify(text)}`, () => assert.equal(parseIpPrefix(text), undefined));
  }
});

describe("PrefixSet", () => {
  it("answers from the longest prefix, whatever the order of adding", () => {
    const prefixes = ["0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.3"];
    const addresses: [address: string, prefix: string][] = [
      ["192.0.2.1", "0.0.0.0/0"],
      ["10.9.9.9", "10.0.0.0/8"],
      ["10.1.9.9", "10.1.0.0/16"],
      ["10.1.2.9", "10.1.2.0/24"],
      ["10.1.2.3", "10.1.2.3"],
      ["::ffff:10.1.2.3", "10.1.2.3"],
    ];
    for (const order of [prefixes, prefixes.toReversed()]) {
      const set = new PrefixSet<string>();
      for (const prefix of order) set.add(prefix, prefix);
      assert.equal(set.size, 5);
      for (const [address, prefix] of addresses) assert.equal(lookup(set, address), prefix, address);
      assert.equal(lookup(set, "::1"), undefined);
    }
  });

  it("keeps IPv4 and IPv6 apart", () => {
    const set = new PrefixSet<string>();
    set.add("::/0", "six");
    assert.equal(lookup(set, "192.0.2.1"), undefined);
    assert.equal(lookup(set, "::ffff:192.0.2.1"), undefined);
    assert.equal(lookup(set, "2001:db8::1"), "six");
    set.add("0.0.0.0/0", "four");
    assert.equal(lookup(set, "192.0.2.1"), "four");
    assert.equal(lookup(set, "::ffff:192.0.2.1"), "four");
  });

  it("finds nothing where two prefixes merely part", () => {
    const set = new PrefixSet<string>();
    set.add("10.0.0.0/16", "a");
    set.add("10.1.0.0/16", "b");
    assert.equal(lookup(set, "10.2.0.1"), undefined);
    assert.equal(set.size, 2);
    set.add("10.0.0.0/15", "both");
    assert.deepEqual([lookup(set, "10.0.0.1"), lookup(set, "10.1.0.1"), set.size], ["a", "b", 3]);
  });

  it("replaces a value, and holds values that are falsy", () => {
    const set = new PrefixSet<number>();
    set.add("10.0.0.0/8", 1);
    set.add("10.255.0.0/8", 0);
    assert.deepEqual([lookup(set, "10.0.0.1"), set.size], [0, 1]);
  });

  it("refuses what is no prefix, and an address of a strange length", () => {
    const set = new PrefixSet<number>();
    assert.throws(
      () => set.add("10.0.0.0/33", 1),
      (error) => error instanceof IpPrefixError && error.text === "10.0.0.0/33",
    );
    assert.equal(set.lookup(new Uint8Array(5)), undefined);
    assert.equal(set.size, 0);
  });

  it("agrees with a linear search through ipaddr.js", () => {
    // Few different octets, so that prefixes nest and addresses hit.
    const octet = fc.constantFrom(0, 0, 0, 0, 1, 127, 128, 255);
    const ipv4 = fc.array(octet, { minLength: 4, maxLength: 4 }).map((octets) => octets.join("."));
    const ipv6 = fc
      .array(octet, { minLength: 8, maxLength: 8 })
      .map((groups) => groups.map((group) => (group * 257).toString(16)).join(":"))
      .filter((text) => !text.startsWith("0:0:0:0:0:ffff:"));
    const address = fc.oneof(ipv4, ipv6);
    const cidr = fc.oneof(
      fc.tuple(ipv4, fc.nat(32)).map(([text, length]) => `${text}/${length}`),
      fc.tuple(ipv6, fc.nat(128)).map(([text, length]) => `${text}/${length}`),
    );
    fc.assert(
      fc.property(
        fc.array(cidr, { maxLength: 30 }),
        fc.array(address, { maxLength: 30 }),
        (cidrs, addresses) => {
          const set = new PrefixSet<string>();
          for (const text of cidrs) set.add(text, key(text));
          for (const text of addresses) {
            const subject = ipaddr.parse(text);
            const covering = cidrs
              .filter((candidate) => {
                const [range, length] = ipaddr.parseCIDR(candidate);
                return range.kind() === subject.kind() && subject.match(range, length);
              })
              .toSorted((a, b) => ipaddr.parseCIDR(b)[1] - ipaddr.parseCIDR(a)[1]);
            const longest = covering[0];
            assert.equal(lookup(set, text), longest === undefined ? undefined : key(longest));
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});

function lookup<Value>(set: PrefixSet<Value>, address: string): Value | undefined {
  const octets = parseIpAddress(address);
  assert.ok(octets, address);
  return set.lookup(octets);
}

/** One text for all spellings of a prefix. */
function key(cidr: string): string {
  const prefix = parseIpPrefix(cidr);
  assert.ok(prefix);
  return `${formatIpAddress(prefix.octets)}/${prefix.length}`;
}
