/** Compares a zone that is amended from its file with one that is read from the same file as a whole. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Name } from "../../dns/name.ts";
import { formatRecord } from "../../dns/resource-record.ts";
import type { ZoneTextFiles } from "../../dns/zone-text/read.ts";
import { compareZones, pendingDifference } from "../changes/zone-journal.ts";
import { ZoneTransition } from "../changes/zone-transition.ts";
import type { RecordLog } from "../data/record-log.ts";
import type { Zone } from "../data/zone.ts";
import { copyOfZone } from "../data/zone-transfer.ts";
import { hasPlainAliases, readFileDifference } from "./file-difference.ts";
import { readZoneFile, SameSerial } from "./parsed-file.ts";
import { zoneLines } from "./zone-printer.ts";

const origin = Name.parse("example.org.");
const pause = async (): Promise<void> => undefined;

function filesOf(text: string): ZoneTextFiles {
  let rest = Buffer.from(text);
  return {
    open: async (file) => ({
      file,
      text: {
        read: async (target) => {
          const length = rest.copy(target);
          rest = rest.subarray(length);
          return length;
        },
        close: async () => undefined,
      },
    }),
  };
}

async function readWhole(text: string): Promise<Zone> {
  return (await readZoneFile({ file: "db", origin, files: filesOf(text), pause })).zone;
}

const differenceTo = (zone: Zone, text: string, knownSerial?: number) =>
  readFileDifference(zone, { file: "db", origin, files: filesOf(text), pause, knownSerial });

async function textOf(zone: Zone): Promise<string> {
  let text = "";
  for await (const line of zoneLines(zone)) text += line;
  return text;
}

const linesOf = (log: RecordLog | undefined): readonly string[] =>
  Array.from(log?.records() ?? assert.fail(), formatRecord).sort();

const head = (serial: number): string => `$TTL 60\n@ SOA ns h ${serial} 1 1 1 1\n@ NS ns\n`;

/** Names and data that often coincide. */
const line = fc
  .tuple(
    fc.constantFrom("a", "b", "c.a", "D.e.f", "ns", "*.w", "@"),
    fc.constantFrom("", "30 "),
    fc.constantFrom(
      "A 192.0.2.1",
      "A 192.0.2.2",
      "A 192.0.2.3",
      "AAAA ::1",
      'TXT "x"',
      "MX 1 A.b",
      "NS ns.x",
    ),
  )
  .map((parts) => parts.join(" "));

test("a zone is the same whether it is amended or read again, time after time", async () => {
  let amended = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(line, { maxLength: 12 }), { minLength: 2, maxLength: 6 }),
      async (files) => {
        const texts = files.map((lines, index) => `${head(index + 1)}${lines.join("\n")}\n`);
        let zone = await readWhole(texts[0] ?? "");
        for (const text of texts.slice(1)) {
          const whole = await readWhole(text);
          const former = await zone.copy(pause);
          const difference = await differenceTo(zone, text);
          if (difference === undefined) {
            zone = whole;
            continue;
          }
          amended++;
          const transition = new ZoneTransition(zone);
          await transition.take(difference.change, pause);
          const found = await pendingDifference(zone, Number.POSITIVE_INFINITY, pause);
          transition.switchOver();
          await transition.finish(pause);
          assert.equal(await textOf(zone), await textOf(whole));
          const logs = await compareZones(former, whole, Number.POSITIVE_INFINITY, pause);
          assert.deepEqual(linesOf(found?.removed), linesOf(logs?.removed));
          assert.deepEqual(linesOf(found?.added), linesOf(logs?.added));
        }
      },
    ),
    { numRuns: 300 },
  );
  assert.ok(amended > 100, `${amended} times`);
});

test("RRsets of any size are distinguished", async () => {
  for (const size of [1, 30, 31, 32, 33, 200]) {
    const records = Array.from({ length: size }, (_, index) => `big A 10.0.${index >> 8}.${index & 255}`);
    const zone = await readWhole(`${head(1)}${records.join("\n")}\n`);
    const same = await differenceTo(zone, `${head(2)}${records.toReversed().join("\n")}\n`);
    assert.deepEqual([same?.change.removed.count, same?.change.added.count], [0, 0], `${size}`);
    const less = await differenceTo(zone, `${head(2)}${records.slice(1).join("\n")}\nnew A 192.0.2.1\n`);
    assert.deepEqual([less?.change.removed.count, less?.change.added.count], [1, 1], `${size}`);
  }
});

const text = (serial: number) => `${head(serial)}a A 192.0.2.1\nalias CNAME a\n`;

for (const [title, lines] of [
  ["a fault", "x A 300.0.0.1"],
  ["a second SOA record", "@ SOA ns h 3 1 1 1 1"],
  ["thousands of records", Array.from({ length: 1_200 }, (_, index) => `n${index} A 192.0.2.1`).join("\n")],
] as const) {
  test(`${title} needs a full read`, async () => {
    const zone = await readWhole(text(1));
    assert.equal(await differenceTo(zone, `${text(2)}${lines}\n`), undefined);
  });
}

test("so do thousands of removed records", async () => {
  const lines = Array.from({ length: 1_200 }, (_, index) => `n${index} A 192.0.2.1`).join("\n");
  const zone = await readWhole(`${text(1)}${lines}\n`);
  assert.equal(await differenceTo(zone, text(2)), undefined);
});

for (const [title, lines, warning, isPlain] of [
  ["an alias", "x CNAME a", undefined, true],
  ["a record at an alias", "alias A 192.0.2.1", undefined, false],
  ["another alias", "alias CNAME b", undefined, false],
  ["a signature", "a RRSIG A 13 3 60 20300101000000 20200101000000 1 example.org. AAAA", undefined, true],
  ["a name outside", "x.example.net. A 192.0.2.1", "does not lie in example.org.", true],
  ["another class", "x CH TXT x", "class CH in a zone of class IN", true],
] as const) {
  test(`${title} is part of a difference`, async () => {
    const zone = await readWhole(text(1));
    const { change, warnings } = (await differenceTo(zone, `${text(2)}${lines}\n`)) ?? assert.fail();
    assert.equal(warnings.length, warning === undefined ? 0 : 1);
    for (const { reason, line } of warnings)
      assert.deepEqual([reason.includes(warning ?? ""), line], [true, 6], reason);
    const transition = new ZoneTransition(zone);
    await transition.take(change, pause);
    assert.equal(await hasPlainAliases(zone, pause), isPlain);
  });
}

test("a file without SOA record needs a full read, and one with the known serial is not read further", async () => {
  const zone = await readWhole(head(1));
  assert.equal(await differenceTo(zone, "$TTL 60\n@ NS ns\n"), undefined);
  await assert.rejects(differenceTo(zone, `${head(1)}x A 192.0.2.1\n`, 1), SameSerial);
});

test("a zone is not changed during an outgoing transfer, and a transfer that was not started before a change is not started after it", async () => {
  const zone = await readWhole(`${head(1)}a A 192.0.2.1\n`);
  const late = copyOfZone(zone);
  const records = copyOfZone(zone).records()[Symbol.iterator]();
  records.next();
  assert.equal(zone.isAmendable, false);
  records.return?.();
  assert.equal(zone.isAmendable, true);
  const difference = await differenceTo(zone, head(2));
  assert.ok(difference);
  zone.amend(difference.change);
  assert.throws(() => [...late.records()], /has changed/);
  assert.equal(zone.serial, 2);
});
