import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseIpPrefix } from "./prefix-set.ts";
import { NO_PREFIX, PrefixTrie } from "./prefix-trie.ts";

/** Few different octets, so that prefixes cover and part from each other. */
const octet = fc.constantFrom(0, 1, 2, 127, 128, 255);

for (const [family, size] of [
  [4, 4],
  [6, 16],
] as const) {
  const address = fc
    .array(octet, { minLength: size, maxLength: size })
    .map((octets) => Uint8Array.from(octets));
  const prefix = fc.record({ octets: address, length: fc.nat(size * 8), value: fc.nat(9) });

  test(`IPv${family}: longest and least agree with a search through all prefixes`, () => {
    fc.assert(
      fc.property(
        fc.array(prefix, { maxLength: 40 }),
        fc.array(address, { maxLength: 10 }),
        (prefixes, addresses) => {
          const trie = new PrefixTrie(family);
          const known = new Map<string, { bits: string; value: number }>();
          for (const { octets, length, value } of prefixes) {
            const bits = bitsOf(octets).slice(0, length);
            trie.setValue(trie.node(masked(octets, length), length), value);
            known.set(bits, { bits, value });
          }
          for (const looked of [...addresses, ...prefixes.map(({ octets }) => octets)]) {
            const text = bitsOf(looked);
            const covering = [...known.values()].filter(({ bits }) => text.startsWith(bits));
            const longest = covering.toSorted((a, b) => b.bits.length - a.bits.length)[0];
            assert.equal(trie.longest(looked, 0), longest?.value ?? NO_PREFIX);
            const least = covering.length === 0 ? NO_PREFIX : Math.min(...covering.map(({ value }) => value));
            assert.equal(trie.least(looked, 0), least);
          }
        },
      ),
    );
  });
}

test("an address may stand within other octets", () => {
  const trie = new PrefixTrie(4);
  const prefix = parseIpPrefix("192.0.2.0/24");
  assert.ok(prefix);
  trie.setValue(trie.node(prefix.octets, prefix.length), 7);
  const mapped = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 1);
  assert.equal(trie.longest(mapped, 12), 7);
  assert.equal(trie.length(trie.leastNode(mapped, 12)), 24);
});

test("100,000 IPv4 networks take at most 8 MB", () => {
  const trie = new PrefixTrie(4);
  for (let index = 0; index < 100_000; index++) {
    const octets = Uint8Array.of(index >> 14, index >> 7, index << 1, 0);
    trie.setValue(trie.node(octets, 24), 0);
  }
  assert.ok(trie.octets <= 8 << 20, `${trie.octets} octets`);
});

function bitsOf(octets: Uint8Array): string {
  return Array.from(octets, (value) => value.toString(2).padStart(8, "0")).join("");
}

function masked(octets: Uint8Array, length: number): Uint8Array {
  return octets.map((value, index) => {
    const kept = Math.min(8, Math.max(0, length - 8 * index));
    return value & (0xff00 >> kept) & 0xff;
  });
}
