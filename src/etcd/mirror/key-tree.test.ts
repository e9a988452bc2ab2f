import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { KeyTree } from "./key-tree.ts";

const octets = (text: string) => Buffer.from(text, "latin1");
const segment = fc.constantFrom("a", "b", "c", "a-b", "xx", "*", "long-".repeat(20));
const key = fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) => `/${segments.join("/")}`);
const value = fc.string({ maxLength: 40 });
const change = fc.oneof(
  fc.record({ kind: fc.constant("set" as const), key, value }),
  fc.record({ kind: fc.constant("delete" as const), key }),
  fc.record({ kind: fc.constant("list" as const), keys: fc.array(fc.tuple(key, value), { maxLength: 8 }) }),
);

test("equals a map of the same keys after any sets, deletions and listings", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), key, (changes, top) => {
      const tree = new KeyTree();
      const map = new Map<string, string>();
      for (const step of changes) {
        if (step.kind === "set") {
          tree.set(octets(step.key), Buffer.from(step.value));
          map.set(step.key, step.value);
        } else if (step.kind === "delete") {
          assert.equal(tree.delete(octets(step.key)), map.delete(step.key));
        } else {
          const dropped: string[] = [];
          const listed = new Map(step.keys);
          tree.beginListing();
          for (const [each, text] of step.keys) tree.set(octets(each), Buffer.from(text));
          for (const _portion of tree.sweep(3, (each) => dropped.push(each)));
          assert.deepEqual(dropped.sort(), [...map.keys()].filter((each) => !listed.has(each)).sort());
          map.clear();
          for (const [each, text] of listed) map.set(each, text);
        }
      }
      assert.equal(tree.size, map.size);
      const below = [...map.keys()].filter((each) => each.startsWith(`${top}/`)).sort();
      const found = tree.below(top, 1_000);
      assert.deepEqual(
        found.map((entry) => [entry.key, entry.value.toString()]),
        below.map((each) => [each, map.get(each)]),
      );
      assert.equal(tree.get(top)?.value.toString(), map.get(top));
      assert.equal(tree.hasBelow(top), below.length > 0);
    }),
  );
});

test("reuses the memory of deleted keys", () => {
  const tree = new KeyTree();
  const put = (round: number) => {
    for (let index = 0; index < 2_000; index++)
      tree.set(octets(`/skydns/org/${round}/${index}`), Buffer.alloc(100 + (index % 7)));
  };
  put(0);
  const { octets: before } = tree;
  for (let round = 1; round < 20; round++) {
    for (let index = 0; index < 2_000; index++) tree.delete(octets(`/skydns/org/${round - 1}/${index}`));
    put(round);
  }
  assert.equal(tree.size, 2_000);
  assert.equal(tree.octets, before);
});

test("keeps leases with keys", () => {
  const tree = new KeyTree();
  tree.set(octets("/a"), octets("1"), 7);
  tree.set(octets("/a/b"), octets("2"));
  assert.equal(tree.leaseOf(octets("/a")), 7);
  assert.equal(tree.leaseOf(octets("/a/b")), -1);
  assert.equal(tree.leaseOf(octets("/c")), -1);
  tree.set(octets("/a"), octets("3"));
  assert.equal(tree.leaseOf(octets("/a")), -1);
});
