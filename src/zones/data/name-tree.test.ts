import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Name } from "../../dns/name.ts";
import { withoutRest } from "../../lib/time/turn-share.ts";
import { APEX, NO_NODE, ZoneTree } from "./name-tree.ts";
import { OctetHeap } from "./octet-heap.ts";
import { EMPTY, Side } from "./pending-nodes.ts";

interface Change {
  readonly add: boolean;
  readonly labels: readonly string[];
}

/** Labels of which many have the same parent, and some differ in case alone. */
const change: fc.Arbitrary<Change> = fc.record({
  add: fc.boolean(),
  labels: fc.array(fc.constantFrom("a", "b", "B", "*", "aa", "Long-label", "\\000", "z"), {
    minLength: 1,
    maxLength: 4,
  }),
});
const changes = fc.array(change, { maxLength: 60 });

/** The names that have records, in lower case. The tree keeps an RRset's number at each of them. */
class Model {
  readonly owners = new Set<string>();

  apply({ add, labels }: Change): void {
    const name = below(labels).toLowerCase().toString();
    if (add) this.owners.add(name);
    else this.owners.delete(name);
  }

  /** All nodes, those without records included. */
  get names(): Set<string> {
    const names = new Set(["."]);
    for (const owner of this.owners) {
      const { wire } = Name.parse(owner);
      for (const start of labelStarts(wire)) names.add(Name.fromCheckedWire(wire.slice(start)).toString());
    }
    return names;
  }
}

function below(labels: readonly string[]): Name {
  return Name.parse(`${labels.join(".")}.`);
}

function apply(tree: ZoneTree, { add, labels }: Change): void {
  const { wire } = below(labels);
  if (add) {
    let node = APEX;
    for (const start of labelStarts(wire).reverse()) node = tree.childOrNew(node, wire, start);
    tree.pend(node, tree.firstRrset(node));
    tree.setFirstRrset(node, 7);
    return;
  }
  const node = find(tree, wire);
  if (node === NO_NODE) return;
  tree.pend(node, tree.firstRrset(node));
  tree.setFirstRrset(node, EMPTY);
  tree.prune(node);
}

function labelStarts(wire: Uint8Array): number[] {
  const starts: number[] = [];
  for (let at = 0; wire[at] !== 0; at += (wire[at] ?? 0) + 1) starts.push(at);
  return starts;
}

function find(tree: ZoneTree, wire: Uint8Array): number {
  let node = APEX;
  for (const start of labelStarts(wire).reverse()) {
    node = tree.child(node, wire, start);
    if (node === NO_NODE) break;
  }
  return node;
}

function nameOf(tree: ZoneTree, node: number): Name {
  const wire = new Uint8Array(256);
  const end = tree.writeLabels(node, wire, 0);
  return Name.fromCheckedWire(wire.slice(0, end + 1));
}

/** All that can be seen of the tree. */
function check(tree: ZoneTree, model: Model): void {
  const found = new Map<string, number>();
  for (let node = APEX; node < tree.limit; node++)
    if (tree.exists(node)) found.set(nameOf(tree, node).toString(), node);
  assert.deepEqual(new Set(found.keys()), model.names);
  for (const [text, node] of found) {
    const { wire } = Name.parse(text.toUpperCase());
    assert.equal(find(tree, wire), node);
    assert.equal(tree.firstRrset(node), model.owners.has(text) ? 7 : EMPTY);
    assert.equal(tree.depth(node), labelStarts(wire).length);
  }
}

test("has the names of a set, and the names between them and the apex", () => {
  fc.assert(
    fc.property(changes, (list) => {
      const [tree, model] = [new ZoneTree(new OctetHeap(0, 0)), new Model()];
      for (const each of list) {
        apply(tree, each);
        model.apply(each);
      }
      check(tree, model);
      assert.equal(tree.count, model.names.size);
    }),
  );
});

test("a copy with room has the same names, and changes on its own", async () => {
  await fc.assert(
    fc.asyncProperty(changes, changes, async (first, second) => {
      const heap = new OctetHeap(0, 0);
      const [tree, model] = [new ZoneTree(heap), new Model()];
      for (const each of first) {
        apply(tree, each);
        model.apply(each);
      }
      const copy = await tree.copy(await heap.copy(withoutRest), withoutRest);
      await copy.makeRoom(100, withoutRest);
      assert.ok(copy.room >= 100);
      const later = new Model();
      for (const owner of model.owners) later.owners.add(owner);
      for (const each of second) {
        apply(copy, each);
        later.apply(each);
      }
      check(copy, later);
      check(tree, model);
    }),
    { numRuns: 30 },
  );
});

for (const side of [Side.BEFORE, Side.AFTER] as const)
  test(`a pending change is seen on its side alone, and stays with side ${side}`, () => {
    fc.assert(
      fc.property(changes, changes, (first, second) => {
        const [tree, before, after] = [new ZoneTree(new OctetHeap(0, 0)), new Model(), new Model()];
        for (const each of first) {
          apply(tree, each);
          before.apply(each);
        }
        for (const owner of before.owners) after.owners.add(owner);
        tree.begin();
        const { pending } = tree;
        assert.ok(pending !== undefined);
        pending.side = Side.AFTER;
        for (const each of second) {
          apply(tree, each);
          after.apply(each);
        }
        check(tree, after);
        pending.side = Side.BEFORE;
        check(tree, before);
        pending.side = side;
        for (let place = pending.count - 1; place >= 0; place--) tree.settle(place, side);
        tree.end();
        const settled = side === Side.BEFORE ? before : after;
        check(tree, settled);
        assert.equal(tree.count, settled.names.size);
        // The counts of children are right: all names can go.
        for (const owner of settled.owners)
          apply(tree, { add: false, labels: owner.slice(0, -1).split(".") });
        assert.equal(tree.count, 1);
      }),
    );
  });

test("nodes and names have canonical order", () => {
  fc.assert(
    fc.property(fc.array(change, { minLength: 2, maxLength: 12 }), (list) => {
      const tree = new ZoneTree(new OctetHeap());
      for (const { labels } of list) apply(tree, { add: true, labels });
      for (let one = APEX; one < tree.limit; one++)
        for (let other = APEX; other < tree.limit; other++) {
          const [left, right] = [nameOf(tree, one), nameOf(tree, other)];
          const order = Math.sign(left.compare(right));
          assert.equal(Math.sign(tree.compare(one, other)), order);
          const starts = labelStarts(right.wire);
          assert.equal(
            Math.sign(tree.compareName(one, right.wire, Uint8Array.from(starts), 0, starts.length)),
            order,
          );
        }
    }),
    { numRuns: 50 },
  );
});
