import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Name } from "../../dns/name.ts";
import { withoutRest } from "../../lib/time/turn-share.ts";
import { APEX, NO_NODE } from "./name-tree.ts";
import { NO_RRSET } from "./rrset-table.ts";
import { Added, ZoneRecords } from "./zone-records.ts";
import { rrsetRecords } from "./zone-transfer.ts";

const apex = Name.parse("example.org.");

interface Change {
  readonly add: boolean;
  readonly labels: readonly string[];
  readonly type: number;
  readonly ttl: number;
  readonly address: number;
}

const change: fc.Arbitrary<Change> = fc.record({
  add: fc.boolean(),
  labels: fc.array(fc.constantFrom("a", "b", "*", "c", "Long-label"), { maxLength: 4 }),
  type: fc.constantFrom(1, 16, 65280),
  ttl: fc.nat({ max: 5 }),
  address: fc.nat({ max: 6 }),
});

/** The expected records: owner and type to RDATA in order of arrival, and the TTL. */
class Model {
  readonly rrsets = new Map<string, { ttl: number; readonly data: string[] }>();

  apply({ add, type, ttl, address }: Change, owner: string): boolean {
    const key = `${owner} ${type}`;
    const rrset = this.rrsets.get(key);
    const data = rdataOf(type, address).toString();
    if (!add) {
      const at = rrset?.data.indexOf(data) ?? -1;
      if (at < 0) return false;
      rrset?.data.splice(at, 1);
      if (rrset?.data.length === 0) this.rrsets.delete(key);
      return true;
    }
    if (rrset === undefined) {
      this.rrsets.set(key, { ttl, data: [data] });
      return true;
    }
    rrset.ttl = Math.min(rrset.ttl, ttl);
    if (rrset.data.includes(data)) return false;
    rrset.data.push(data);
    return true;
  }

  hasNamesAtOrBelow(owner: string): boolean {
    return [...this.rrsets.keys()].some((key) => {
      const [name = ""] = key.split(" ");
      return name === owner || name.endsWith(`.${owner}`);
    });
  }
}

function rdataOf(type: number, address: number): Uint8Array {
  return type === 16
    ? Uint8Array.from([address, ...new Array<number>(address).fill(0x41)])
    : Uint8Array.of(type & 255, 0, 2, address);
}

test("equals a plain map after any additions and removals", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 120 }), (changes) => {
      const records = new ZoneRecords(apex);
      const model = new Model();
      const owners = new Set<string>();
      for (const one of changes) {
        const owner = Name.fromLabels(one.labels, apex);
        const text = owner.toLowerCase().toString();
        owners.add(text);
        const rdata = rdataOf(one.type, one.address);
        const expected = model.apply(one, text);
        const { wire } = owner;
        const actual = one.add
          ? records.add(wire, wire.length, one.type, one.ttl, rdata, rdata.length) === Added.NEW
          : records.remove(wire, wire.length, one.type, rdata, rdata.length);
        assert.equal(actual, expected);
      }
      let count = 0;
      for (const owner of owners) {
        const { wire } = Name.parse(owner);
        const node = records.nodeFor(wire, wire.length, false);
        assert.equal(node !== NO_NODE, node === APEX || model.hasNamesAtOrBelow(owner), owner);
        if (node === NO_NODE) continue;
        assert.equal(records.nodeName(node).toString(), owner);
        for (const type of [1, 16, 65280]) {
          const rrset = records.rrset(node, type);
          const expected = model.rrsets.get(`${owner} ${type}`);
          assert.equal(rrset !== NO_RRSET, expected !== undefined);
          if (rrset === NO_RRSET) continue;
          count += records.count(rrset);
          assert.equal(records.ttl(rrset), expected?.ttl);
          const { bytes } = records.heap;
          const found: string[] = [];
          let at = records.data(rrset);
          for (let left = records.count(rrset); left > 0; left--) {
            const length = ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
            found.push(bytes.slice(at + 2, at + 2 + length).toString());
            at += 2 + length;
          }
          assert.deepEqual(found, expected?.data);
        }
      }
      assert.equal(records.recordCount, count);
    }),
    { numRuns: 300 },
  );
});

test("an RRset too large for a message is refused, and one that grows on all sides stays complete", () => {
  const records = new ZoneRecords(apex);
  const { wire } = apex;
  const other = Name.parse("x.example.org.").wire;
  for (let index = 0; index < 1_000; index++) {
    const rdata = Uint8Array.of(10, 0, index >> 8, index & 255);
    assert.equal(records.add(wire, wire.length, 1, 60, rdata, 4), Added.NEW);
    assert.equal(records.add(other, other.length, 1, 60, rdata, 4), Added.NEW);
  }
  assert.equal([...rrsetRecords(records, apex, records.rrset(APEX, 1))].length, 1_000);
  const large = new Uint8Array(40_000);
  assert.equal(records.add(wire, wire.length, 10, 60, large, large.length), Added.NEW);
  large[0] = 1;
  assert.equal(records.add(wire, wire.length, 10, 60, large, large.length), Added.TOO_LARGE);
});

test("names outside of the zone are refused, and names in it compare without case", () => {
  const records = new ZoneRecords(apex);
  for (const [text, expected] of [
    ["example.net.", Added.OUT_OF_ZONE],
    ["badexample.org.", Added.OUT_OF_ZONE],
    ["org.", Added.OUT_OF_ZONE],
    ["WWW.Example.ORG.", Added.NEW],
    ["www.example.org.", Added.DUPLICATE],
  ] as const) {
    const { wire } = Name.parse(text);
    assert.equal(records.add(wire, wire.length, 1, 60, Uint8Array.of(1, 2, 3, 4), 4), expected, text);
  }
});

test("a trimmed zone grows again, however little it holds", async () => {
  for (const names of [1, 2, 3, 5, 20]) {
    const records = new ZoneRecords(apex);
    for (let index = 0; index < names; index++) {
      const { wire } = Name.parse(`n${index}.example.org.`);
      for (const text of [wire, apex.wire]) {
        await records.trim(withoutRest);
        assert.equal(records.add(text, text.length, 16 + index, 60, Uint8Array.of(0), 1), Added.NEW);
        assert.ok(records.rrset(records.nodeFor(text, text.length, false), 16 + index) >= 0);
      }
    }
    assert.equal(records.recordCount, 2 * names);
  }
});

test("growing in portions gives the same result as growing at once", async () => {
  const [first, second] = [new ZoneRecords(apex), new ZoneRecords(apex)];
  let pauses = 0;
  const pause = async (): Promise<void> => void pauses++;
  for (let index = 0; index < 60_000; index++) {
    if (index % 100 === 0) {
      await second.makeRoom(pause);
      assert.ok(second.size < 1024 * 1024 || second.hasRoomFor(100, 10_000));
    }
    const { wire } = Name.parse(`name-${index}.m${index % 7}.example.org.`);
    const data = Uint8Array.of(1, 2, index >> 8, index & 255);
    for (const records of [first, second])
      assert.equal(records.add(wire, wire.length, 1, 60, data, 4), Added.NEW);
  }
  await second.trim(pause);
  assert.ok(pauses > 10);
  assert.deepEqual([second.recordCount, second.names.count], [first.recordCount, first.names.count]);
  for (let node = APEX; node < first.names.limit; node++) {
    const name = first.nodeName(node);
    const other = second.nodeFor(name.wire, name.wire.length, false);
    assert.deepEqual(
      [...rrsetRecords(second, name, second.first(other))],
      [...rrsetRecords(first, name, first.first(node))],
    );
  }
});

test("with reserved room, the result is the same and nothing grows", () => {
  const fill = (records: ZoneRecords): void => {
    for (let index = 0; index < 2_000; index++) {
      const { wire } = Name.parse(`n${index}.m${index % 7}.example.org.`);
      assert.equal(
        records.add(wire, wire.length, 1, 60, Uint8Array.of(1, 2, index >> 8, index & 255), 4),
        Added.NEW,
      );
    }
  };
  const [first, second] = [new ZoneRecords(apex), new ZoneRecords(apex)];
  fill(first);
  second.reserveAs(first);
  const { size } = second;
  fill(second);
  assert.equal(second.size, size);
  for (let node = APEX; node < first.names.limit; node++) {
    const name = first.nodeName(node);
    const other = second.nodeFor(name.wire, name.wire.length, false);
    assert.equal(second.first(other), first.first(node));
    assert.ok(second.nodeName(other).equals(name));
  }
});
