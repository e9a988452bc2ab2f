import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Name } from "../../dns/name.ts";
import { canonicalData, parseRecord } from "../../dns/resource-record.ts";
import { recordText } from "../../plugin/testing.ts";
import { Zone } from "../data/zone.ts";
import { copyOfZone } from "../data/zone-transfer.ts";
import { differenceOf, ZoneJournal } from "./zone-journal.ts";

const apex = Name.parse("example.org.");
const pause = async (): Promise<void> => undefined;

function zoneOf(serial: number, lines: readonly string[]): Zone {
  const zone = new Zone(apex);
  for (const line of [`@ 60 SOA a. b. ${serial} 1 1 1 1`, ...lines]) {
    const record = parseRecord(line, { origin: apex });
    const data = canonicalData(record);
    zone.add(record.name.wire, record.name.wire.length, record.type, record.ttl, data, data.length);
  }
  return zone;
}

function textOf(zone: Zone): string[] {
  return [...copyOfZone(zone).records()].map(recordText).sort();
}

const line = fc
  .tuple(
    fc.constantFrom("@", "a", "b.a", "*.w"),
    fc.integer({ min: 1, max: 3 }),
    fc.constantFrom(
      "A 192.0.2.1",
      "A 192.0.2.2",
      "TXT x",
      "NSEC3 1 0 0 - 2vptu5timamqttgl4luu9kg21e0aor3s A",
    ),
  )
  .map(([name, ttl, data]) => `${name} ${ttl} ${data}`);

test("the removed and added records turn the earlier state into the later one", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(line, { maxLength: 12 }),
      fc.array(line, { maxLength: 12 }),
      async (old, young) => {
        const before = zoneOf(1, old);
        const after = zoneOf(2, young);
        const difference = await differenceOf(before, after, 1_000_000, pause);
        assert.ok(difference);
        const records = new Map(textOf(before).map((text) => [text, true]));
        for (const record of difference.removed.records()) assert.ok(records.delete(recordText(record)));
        for (const record of difference.added.records()) records.set(recordText(record), true);
        assert.deepEqual([...records.keys()].sort(), textOf(after));
      },
    ),
  );
});

test("a journal has the steps from each serial that it covers, and from no other", async () => {
  const states = [1, 2, 3, 5].map((serial) => zoneOf(serial, [`h${serial} 60 A 192.0.2.1`]));
  const journal = new ZoneJournal();
  for (const [index, after] of states.entries()) {
    const before = states[index - 1];
    const difference = before && (await differenceOf(before, after, 10_000, pause));
    if (difference !== undefined) journal.add(difference, 10_000);
  }
  const steps = (serial: number) =>
    journal.since(serial, 5) &&
    [...(journal.since(serial, 5) ?? [])].map((record) => recordText(record).split(" ", 7).join(" "));
  assert.deepEqual(steps(3), [
    "example.org. 60 IN SOA a. b. 3",
    "h3.example.org. 60 IN A 192.0.2.1",
    "example.org. 60 IN SOA a. b. 5",
    "h5.example.org. 60 IN A 192.0.2.1",
  ]);
  assert.equal(steps(1)?.length, 12);
  assert.equal(steps(4), undefined);
  assert.equal(journal.since(1, 6), undefined);
});

test("an older serial makes no step, and a difference above the limit is dropped", async () => {
  assert.equal(await differenceOf(zoneOf(2, []), zoneOf(1, []), 1_000, pause), undefined);
  const many = Array.from({ length: 100 }, (_, index) => `h${index} 60 A 192.0.2.1`);
  assert.equal(await differenceOf(zoneOf(1, []), zoneOf(2, many), 1_000, pause), undefined);
});
