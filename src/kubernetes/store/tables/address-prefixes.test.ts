import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Name } from "../../../dns/name.ts";
import { type AddressKey, addressKey } from "../../objects/addresses.ts";
import { AddressPrefixes } from "./address-prefixes.ts";
import { prefixOfReverseName, reverseName } from "./reverse-names.ts";

/** Few values, so that prefixes meet. */
const octet = fc.constantFrom(0, 1, 10, 96, 127, 128, 255);
const address = fc.oneof(
  fc.tuple(octet, octet, octet, octet).map((octets) => addressKey(Uint8Array.from(octets))),
  fc
    .array(fc.constantFrom(0, 1, 0xfd), { minLength: 16, maxLength: 16 })
    .map((octets) => addressKey(Uint8Array.from(octets))),
);
const change = fc.record({ key: address, comes: fc.boolean() });

/** The names above that of an address, the nearest first: those of IPv6 that are told apart. */
function namesAbove(key: AddressKey): string[] {
  const labels = reverseName(key).toString().split(".").slice(0, -3);
  const root = typeof key === "number" ? "in-addr.arpa." : "ip6.arpa.";
  const first = typeof key === "number" ? 1 : 16;
  return labels.slice(first).map((_, index) => `${labels.slice(first + index).join(".")}.${root}`);
}

function has(prefixes: AddressPrefixes, name: string): boolean {
  const prefix = prefixOfReverseName(Name.parse(name));
  assert.ok(prefix !== undefined, name);
  return prefixes.has(prefix);
}

test("knows the names above the addresses that have come and not gone, whatever the order", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      const prefixes = new AddressPrefixes();
      const there: AddressKey[] = [];
      const seen = new Set<string>();
      for (const { key, comes } of changes) {
        if (comes) {
          there.push(key);
          prefixes.add(key);
        } else if (there.includes(key)) {
          there.splice(there.indexOf(key), 1);
          prefixes.delete(key);
        }
        for (const name of namesAbove(key)) seen.add(name);
        const expected = new Set(there.flatMap(namesAbove));
        for (const name of seen) assert.equal(has(prefixes, name), expected.has(name), name);
      }
    }),
  );
});

test("of IPv6, the first 64 bits are told apart", () => {
  const prefixes = new AddressPrefixes();
  prefixes.add(addressKey(Uint8Array.from([0xfd, 0, 0, 0, 0, 0, 0, 0x12, 0, 0, 0, 0, 0, 0, 0, 1])));
  const network = "2.1.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa.";
  assert.equal(has(prefixes, network), true);
  assert.equal(has(prefixes, `3${network.slice(1)}`), false);
  assert.equal(has(prefixes, `7.7.7.${network}`), true);
});

test("many addresses of one network take no more room than one", () => {
  const prefixes = new AddressPrefixes();
  prefixes.add(addressKey(Uint8Array.of(10, 1, 2, 3)));
  const { octets } = prefixes;
  for (let last = 4; last < 250; last++) prefixes.add(addressKey(Uint8Array.of(10, 1, 2, last)));
  assert.equal(prefixes.octets, octets);
});

for (const name of [
  "in-addr.arpa.",
  "1.0.96.10.in-addr.arpa.",
  "5.1.0.96.10.in-addr.arpa.",
  "256.10.in-addr.arpa.",
  "010.in-addr.arpa.",
  "x.10.in-addr.arpa.",
  "ip6.arpa.",
  "10.ip6.arpa.",
  "g.f.ip6.arpa.",
  "10.example.",
]) {
  test(`${name} is no beginning of addresses`, () =>
    assert.equal(prefixOfReverseName(Name.parse(name)), undefined));
}
