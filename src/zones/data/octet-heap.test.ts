import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { withoutRest } from "../../lib/time/turn-share.ts";
import { OctetHeap } from "./octet-heap.ts";

/** Takes or gives back an item. Lengths around those that are reused. */
const step = fc.record({
  take: fc.boolean(),
  length: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1020, max: 1028 })),
  which: fc.nat(),
});

test("no item lies in another, and each keeps its octets", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const heap = new OctetHeap(0, 0);
      const items: { at: number; length: number; octet: number }[] = [];
      let lost = 0;
      for (const [index, { take, length, which }] of steps.entries()) {
        if (take || items.length === 0) {
          const at = heap.allocate(length);
          const octet = 1 + (index % 255);
          heap.bytes.fill(octet, at, at + length);
          items.push({ at, length, octet });
        } else {
          const [item] = items.splice(which % items.length, 1);
          assert.ok(item !== undefined);
          heap.free(item.at, item.length);
          lost++;
        }
        for (const { at, length: octets, octet } of items)
          assert.ok(heap.bytes.subarray(at, at + octets).every((value) => value === octet));
      }
      const held = items.reduce((sum, { length }) => sum + length, 0);
      assert.equal(heap.used - heap.garbage, held);
      assert.ok(lost > 0 || heap.garbage === 0);
    }),
  );
});

test("a freed place is taken by the next item of its length, unless the heap is small", () => {
  const heap = new OctetHeap(0, 100);
  const first = heap.allocate(50);
  heap.free(first, 50);
  assert.notEqual(heap.allocate(50), first);
  const second = heap.allocate(50);
  heap.free(second, 50);
  assert.notEqual(heap.allocate(49), second);
  assert.equal(heap.allocate(50), second);
});

test("the last item can grow where it is", () => {
  const heap = new OctetHeap(4);
  const at = heap.allocate(3);
  assert.equal(heap.isLast(at, 3), true);
  heap.extend(1000);
  assert.equal(heap.isLast(at, 1003), true);
  heap.allocate(1);
  assert.equal(heap.isLast(at, 1003), false);
});

test("a copy has the same octets, and room; an emptied heap has none of them", async () => {
  const heap = new OctetHeap(0, 0);
  const at = heap.allocate(8);
  heap.bytes.set([1, 2, 3, 4, 5, 6, 7, 8], at);
  heap.free(heap.allocate(8), 8);
  const copy = await heap.copy(withoutRest);
  heap.bytes.fill(0);
  assert.deepEqual([...copy.bytes.subarray(at, at + 8)], [1, 2, 3, 4, 5, 6, 7, 8]);
  assert.equal(copy.allocate(8), at + 8);
  await copy.makeRoom(5_000, withoutRest);
  assert.ok(copy.room >= 5_000);
  assert.deepEqual([...copy.bytes.subarray(at, at + 2)], [1, 2]);
  copy.clear();
  assert.deepEqual([copy.used, copy.garbage, copy.allocate(8)], [0, 0, 0]);
});
