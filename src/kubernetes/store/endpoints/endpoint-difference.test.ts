import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { EndpointGroup, EndpointSet } from "../../objects/objects.ts";
import { ChangeRecorder } from "../tables/store-change.ts";
import { addressesOf, differentAddresses, recordEndpointDifference } from "./endpoint-difference.ts";

function difference(old: EndpointSet, set: EndpointSet): unknown[] {
  const change = new ChangeRecorder();
  change.listening = true;
  recordEndpointDifference(old, set, change);
  return [...new Set(change.addresses)].toSorted((one, other) => (String(one) < String(other) ? -1 : 1));
}

function setOf(group: Partial<EndpointGroup>, addresses: readonly number[], readyCount: number): EndpointSet {
  const octets = Uint8Array.from(addresses.flatMap((address) => [10, 0, 0, address]));
  const count = addresses.length;
  const whole: EndpointGroup = {
    ...{ addressLength: 4, addresses: octets, count, readyCount, labels: undefined, zones: undefined },
    ...{ ports: [], ...group },
  };
  return { namespace: "shop", name: "web-1", service: "web", groups: count === 0 ? [] : [whole] };
}

const endpoints = fc
  .tuple(fc.array(fc.nat(12), { maxLength: 24 }), fc.nat(24))
  .map(([addresses, ready]) => ({ addresses, ready: Math.min(ready, addresses.length) }));

test("endpoints without names are compared as those with empty ones", () => {
  const both = (old: typeof endpoints extends fc.Arbitrary<infer T> ? T : never, set: typeof old): void => {
    const of = ({ addresses, ready }: typeof old, isNamed: boolean) =>
      setOf(isNamed ? { labels: addresses.map(() => "") } : {}, addresses, ready);
    assert.deepEqual(difference(of(old, false), of(set, false)), difference(of(old, true), of(set, true)));
  };
  fc.assert(fc.property(endpoints, endpoints, both));
  // What changes in fact: one goes, one comes, one is no longer ready.
  fc.assert(
    fc.property(endpoints, fc.nat(23), fc.nat(12), fc.nat(24), (old, at, address, ready) => {
      const addresses = [...old.addresses.slice(0, at), ...old.addresses.slice(at + 1), address];
      both(old, { addresses, ready: Math.min(ready, addresses.length) });
    }),
  );
});

test("of a hundred endpoints only that which was replaced is named, and that which came for it", () => {
  const addresses = Array.from({ length: 100 }, (_, at) => at);
  const replaced = addresses.with(40, 200);
  assert.deepEqual(
    difference(setOf({}, addresses, 100), setOf({}, replaced, 100)),
    [0x0a00_0028, 0x0a00_00c8],
  );
  assert.deepEqual(difference(setOf({}, addresses, 100), setOf({}, addresses, 99)), [0x0a00_0063]);
  // The usual change: one in the middle is ready no more, and goes behind all that are.
  const flipped = [...addresses.toSpliced(40, 1), 40];
  assert.deepEqual(difference(setOf({}, addresses, 100), setOf({}, flipped, 99)), [0x0a00_0028]);
  assert.deepEqual(difference(setOf({}, flipped, 99), setOf({}, addresses, 100)), [0x0a00_0028]);
});

test("addresses that come and go are those of one state alone, each once", () => {
  const check = (old: EndpointSet, set: EndpointSet): void => {
    const [before, after] = [addressesOf(old), addressesOf(set)];
    const { gone, come } = differentAddresses(old, set);
    assert.deepEqual(new Set(gone), new Set([...before].filter((key) => !after.has(key))));
    assert.deepEqual(new Set(come), new Set([...after].filter((key) => !before.has(key))));
    assert.equal(new Set(gone).size + new Set(come).size, gone.length + come.length);
  };
  fc.assert(
    fc.property(endpoints, endpoints, (old, set) =>
      check(setOf({}, old.addresses, old.ready), setOf({}, set.addresses, set.ready)),
    ),
  );
  const hundred = Array.from({ length: 100 }, (_, at) => at);
  check(setOf({}, hundred, 100), setOf({}, hundred.with(40, 200), 100));
  check(setOf({}, hundred, 100), setOf({}, [...hundred.slice(1), 200], 100));
  check(setOf({}, hundred, 100), setOf({}, [...hundred.toSpliced(40, 1), 40], 99));
  check(setOf({}, [...hundred.toSpliced(40, 1), 200], 99), setOf({}, [...hundred, 40], 100));
  fc.assert(
    fc.property(endpoints, fc.nat(23), fc.nat(24), ({ addresses, ready }, at, after) => {
      const moved = [...addresses.toSpliced(at, 1), ...addresses.slice(at, at + 1)];
      check(setOf({}, addresses, ready), setOf({}, moved, Math.min(after, moved.length)));
    }),
  );
  // One that stands twice is there as long as one of them is.
  check(setOf({}, [...hundred, 40], 100), setOf({}, hundred.with(40, 200), 100));
});
