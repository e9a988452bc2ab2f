import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Name } from "../../dns/name.ts";
import { formatRecord, parseRecord, plainData } from "../../dns/resource-record.ts";
import { directive } from "../../plugin/config/schema.ts";
import { definePlugin } from "../../plugin/contract/define-plugin.ts";
import { Fallthrough } from "../../plugin/query/zones.ts";
import { PluginTest } from "../../plugin/testing.ts";
import { ZoneChangeError } from "../changes/zone-changes.ts";
import { type PlainRecord, RecordLog } from "../data/record-log.ts";
import { Zone } from "../data/zone.ts";
import type { ZoneChange } from "../data/zone-change.ts";
import { copyOfZone } from "../data/zone-transfer.ts";
import { ServedZone } from "./served-zone.ts";
import { ZoneService } from "./zone-service.ts";

const APEX = Name.parse("example.");

function serving(zone: Zone): { readonly service: ZoneService; readonly served: ServedZone } {
  const services: ZoneService[] = [];
  const definition = definePlugin({
    name: "zones",
    summary: "Zones of a test.",
    config: directive({ args: {}, options: {} }),
    create(_config, site) {
      services.push(new ZoneService({}, site, Fallthrough.none));
      return {};
    },
  });
  PluginTest.of(definition, "zones");
  const [service] = services;
  assert.ok(service);
  const served = new ServedZone(APEX);
  served.zone = zone;
  service.table.add(served);
  // A listener for changes.
  service.onZoneChange(() => undefined);
  return { service, served };
}

function plain(text: string): PlainRecord {
  const record = parseRecord(text);
  return { owner: record.name.wire, type: record.type, ttl: record.ttl, rdata: plainData(record) };
}

const soa = (serial: number) => `example. 60 IN SOA ns. host. ${serial} 2 3 4 5`;

function zoneOf(serial: number, lines: Iterable<string>): Zone {
  const zone = new Zone(APEX);
  for (const line of [soa(serial), ...lines]) zone.addPlain(plain(line));
  return zone;
}

function logOf(lines: readonly string[]): RecordLog {
  const log = new RecordLog();
  for (const line of lines) log.addPlain(plain(line));
  return log;
}

function linesOf(zone: Zone | undefined): string[] {
  assert.ok(zone);
  const copy = copyOfZone(zone);
  return [formatRecord(copy.soa), ...Array.from(copy.records(), formatRecord).sort()];
}

function stepsBetween(states: readonly ReadonlySet<string>[]): ZoneChange[] {
  return states.slice(1).map((after, index) => {
    const before = states[index] ?? new Set<string>();
    return {
      from: index + 1,
      soa: plain(soa(index + 2)),
      removed: logOf([...before].filter((line) => !after.has(line))),
      added: logOf([...after].filter((line) => !before.has(line))),
    };
  });
}

const line = fc
  .tuple(
    fc.constantFrom("a.", "b.", "c.b.", "*.w.", ""),
    fc.constantFrom('TXT "x"', 'TXT "y"', "A 192.0.2.1", "MX 1 a.b."),
  )
  .map(([owner, data]) => `${owner}example. 60 IN ${data}`);
const states = fc.array(
  fc.array(line, { maxLength: 10 }).map((lines) => new Set(lines)),
  { minLength: 2, maxLength: 6 },
);

test("a zone reaches the same state in place and on a copy, with all steps in its journal", async () => {
  await fc.assert(
    fc.asyncProperty(states, fc.boolean(), async (sets, isRead) => {
      const zone = zoneOf(1, sets[0] ?? []);
      const { service, served } = serving(zone);
      // The zone is being transferred and must not change.
      if (isRead) zone.readers++;
      const before = linesOf(zone);
      await service.advance(served, stepsBetween(sets), Number.POSITIVE_INFINITY);
      const last = linesOf(zoneOf(sets.length, sets.at(-1) ?? []));
      assert.deepEqual(linesOf(served.zone), last);
      assert.equal(served.zone === zone, !isRead);
      if (isRead) assert.deepEqual(linesOf(zone), before);
      for (const [index, lines] of sets.entries()) {
        if (index === sets.length - 1) continue;
        const transfer = service.transfer(APEX);
        const here = new Set(lines);
        let [isAdding, count] = [true, 0];
        for (const record of transfer?.changesSince?.(index + 1) ?? assert.fail(`serial ${index + 1}`)) {
          const text = formatRecord(record).replaceAll("\t", " ");
          if (text.includes(" SOA ")) {
            isAdding = !isAdding;
            count++;
          } else if (isAdding) here.add(text);
          else assert.ok(here.delete(text), text);
        }
        assert.equal(count, 2 * (sets.length - 1 - index));
        assert.deepEqual(linesOf(zoneOf(sets.length, here)), last);
      }
    }),
    { numRuns: 200 },
  );
});

test("a change that does not fit has no effect, and those before it are in force", async () => {
  for (const isRead of [false, true]) {
    const [one, two] = ["a.example. 60 IN A 192.0.2.1", "b.example. 60 IN A 192.0.2.2"];
    const zone = zoneOf(1, [one]);
    const { service, served } = serving(zone);
    if (isRead) zone.readers++;
    const [good, next] = stepsBetween([new Set([one]), new Set([one, two]), new Set([two])]);
    assert.ok(good && next);
    const lying = { ...next, removed: logOf(["nope.example. 60 IN A 192.0.2.9"]) };
    await assert.rejects(service.advance(served, [good, lying], 1_000_000), ZoneChangeError);
    assert.deepEqual(linesOf(served.zone), linesOf(isRead ? zoneOf(1, [one]) : zoneOf(2, [one, two])));
    // A step from another state.
    await assert.rejects(service.advance(served, [{ ...good, from: 7 }], 1_000_000), ZoneChangeError);
    const many = Array.from(
      { length: 3_000 },
      (_, index) => `n${index}.example. 60 IN TXT "${"x".repeat(200)}"`,
    );
    const large = { ...good, from: served.zone?.serial ?? 0, added: logOf(many) };
    await assert.rejects(service.advance(served, [large], 100_000), /larger than 100000 octets/);
    await service.advance(served, [large], 10_000_000);
    assert.equal(served.zone?.recordCount, (isRead ? 2 : 3) + many.length);
  }
});

test("a copy leaves unused bytes behind", async () => {
  const { service, served } = serving(zoneOf(1, []));
  let serial = 1;
  for (let round = 0; round < 40; round++) {
    const lines = Array.from(
      { length: 50 },
      (_, index) => `n${index}.example. 60 IN TXT "${round}${"x".repeat(250)}"`,
    );
    for (const [removed, added] of [
      [[], lines],
      [lines, []],
    ]) {
      const soaAfter = plain(soa(serial + 1));
      const change = {
        from: serial++,
        soa: soaAfter,
        removed: logOf(removed ?? []),
        added: logOf(added ?? []),
      };
      await service.advance(served, [change], Number.POSITIVE_INFINITY);
    }
  }
  assert.equal(served.zone?.recordCount, 1);
  assert.ok((served.zone?.size ?? 0) < 500_000, `${served.zone?.size}`);
});

test("a replaced zone frees its memory, unless another user has it", async () => {
  const lines = Array.from({ length: 5_000 }, (_, index) => `h${index}.example. 60 IN A 192.0.2.1`);
  const [first, second, third] = [zoneOf(1, lines), zoneOf(2, lines), zoneOf(3, lines)];
  const { size } = first;
  const { service, served } = serving(first);
  const promised = copyOfZone(first);
  await service.replace(served, second);
  assert.ok(first.size < size / 10, `${first.size} octets`);
  assert.throws(() => [...promised.records()], /has changed/);
  const other = new ServedZone(APEX);
  other.zone = second;
  await service.replace(served, third);
  assert.equal(linesOf(other.zone).length, lines.length + 1);
  const copy = copyOfZone(third).records()[Symbol.iterator]();
  assert.equal(copy.next().done, false);
  await service.replace(served, zoneOf(4, lines));
  let left = 0;
  while (copy.next().done !== true) left++;
  assert.equal(left, lines.length - 1);
});

const manyLines = (count: number, from = 0): string[] =>
  Array.from({ length: count }, (_, index) => `n${from + index}.example. 60 IN A 192.0.2.1`);

test("a large change is made in the zone itself, unless another generation has it or gets it before the end", async () => {
  const [before, after] = [new Set(manyLines(3_000)), new Set(manyLines(3_000, 1_500))];
  const [change] = stepsBetween([before, after]);
  assert.ok(change);
  const expected = linesOf(zoneOf(2, after));
  for (const when of ["never", "before", "meanwhile"] as const) {
    const zone = zoneOf(1, before);
    const { service, served } = serving(zone);
    const other = new ServedZone(APEX);
    if (when === "before") other.zone = zone;
    const advancing = service.advance(served, [change], 10_000_000);
    if (when === "meanwhile") {
      other.zone = zone;
      await assert.rejects(advancing, /changed by another operation/);
    } else {
      await advancing;
      assert.deepEqual(linesOf(served.zone), expected);
    }
    assert.equal(served.zone === zone, when !== "before");
    if (when !== "never") assert.deepEqual(linesOf(other.zone), linesOf(zoneOf(1, before)));
    assert.equal(zone.isChanging, false);
  }
});

test("a transfer that lasts through two changes keeps its state, the second being made on a copy", async () => {
  const states = [0, 1_000, 2_000].map((from) => new Set(manyLines(2_500, from)));
  const [first, second] = stepsBetween(states);
  assert.ok(first && second);
  const zone = zoneOf(1, states[0] ?? []);
  const { service, served } = serving(zone);
  const transfer = copyOfZone(zone);
  const lines = [formatRecord(transfer.soa)];
  for (const record of transfer.records()) {
    lines.push(formatRecord(record));
    if (lines.length === 100) await service.advance(served, [first], 10_000_000);
    if (lines.length === 200) await service.advance(served, [second], 10_000_000);
    if (lines.length === 150) assert.deepEqual([served.zone === zone, zone.serial], [true, 2]);
  }
  assert.deepEqual(lines.sort(), [...linesOf(zoneOf(1, states[0] ?? []))].sort());
  assert.notEqual(served.zone, zone);
  assert.deepEqual(linesOf(served.zone), linesOf(zoneOf(3, states[2] ?? [])));
});

test("a compared difference is published as its effect", async () => {
  const zone = zoneOf(1, [...manyLines(10), 'm.example. 60 IN TXT "x"', 'm.example. 60 IN TXT "y"']);
  const { service, served } = serving(zone);
  const change = {
    from: 1,
    soa: plain(soa(2)),
    // The second TTL differs from that of the RRset, so it has no effect.
    removed: logOf(['m.example. 60 IN TXT "y"', "n1.example. 60 IN A 192.0.2.1"]),
    added: logOf(['m.example. 300 IN TXT "y"', "new.example. 60 IN A 192.0.2.1"]),
  };
  assert.equal(await service.adopt(served, change, 1_000_000, async () => false), false);
  assert.deepEqual([zone.serial, zone.isChanging, zone.recordCount], [1, false, 13]);
  assert.equal(await service.adopt(served, change, 1_000_000), true);
  assert.equal(served.zone, zone);
  const told = Array.from(service.transfer(APEX)?.changesSince?.(1) ?? [], formatRecord);
  assert.deepEqual(
    told.filter((text) => !text.includes("SOA")).map((text) => text.split(/\s/)[0]),
    ["n1.example.", "new.example."],
  );
});
