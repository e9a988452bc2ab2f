import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { Name } from "../../dns/name.ts";
import { formatRecord, parseRecord, plainData } from "../../dns/resource-record.ts";
import { Zone } from "../zone.ts";
import { copyOfZone } from "../zone-transfer.ts";
import { withoutDetours } from "./dynamic-zone.ts";
import { EditedZone } from "./edited-zone.ts";
import { JournalError, UpdateJournal } from "./update-journal.ts";

const APEX = Name.parse("example.");

function zoneOf(lines: readonly string[]): Zone {
  const zone = new Zone(APEX);
  for (const line of ["example. 60 IN SOA ns. host. 1 2 3 4 5", ...lines]) {
    const record = parseRecord(line);
    const data = plainData(record);
    zone.add(record.name.wire, record.name.wire.length, record.type, record.ttl, data, data.length);
  }
  return zone;
}

function linesOf(zone: Zone): string[] {
  const copy = copyOfZone(zone);
  return [formatRecord(copy.soa), ...Array.from(copy.records(), formatRecord).sort()];
}

const address = fc.integer({ min: 1, max: 3 }).map((last) => `192.0.2.${last}`);
const owner = fc.constantFrom("a.example.", "b.example.");
const ttl = fc.constantFrom(60, 300);
const record = fc
  .tuple(owner, ttl, address)
  .map(([name, seconds, data]) => `${name} ${seconds} IN A ${data}`);
const change = fc.record({ kind: fc.constantFrom("add", "remove", "removeRrset", "serial"), line: record });

test("steps without detours lead to the same zone, as often as a journal is written anew", () => {
  fc.assert(
    fc.property(
      fc.array(record, { maxLength: 4 }),
      fc.array(change, { maxLength: 30 }),
      fc.nat(30),
      (base, changes, half) => {
        const edited = new EditedZone(zoneOf(base));
        let compacted: EditedZone["steps"] = [];
        let seen = 0;
        for (const [index, { kind, line }] of changes.entries()) {
          const parsed = parseRecord(line);
          if (kind === "add") edited.add(parsed);
          else if (kind === "remove") edited.remove(parsed);
          else if (kind === "removeRrset") edited.removeRrset(parsed.name, parsed.type);
          else edited.advanceSerial(edited.serial);
          if (index === half) {
            compacted = withoutDetours([...compacted, ...edited.steps.slice(seen)]);
            seen = edited.steps.length;
          }
        }
        compacted = withoutDetours([...compacted, ...edited.steps.slice(seen)]);
        const repeated = new EditedZone(zoneOf(base));
        for (const step of compacted) repeated.repeat(step);
        assert.deepEqual(linesOf(repeated.zone), linesOf(edited.zone));
      },
    ),
    { numRuns: 500 },
  );
});

async function inFolder(use: (path: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "portolan-journal-"));
  try {
    await use(join(folder, "journal"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("a journal cut off anywhere has the frames in front of the cut", async () => {
  await inFolder(async (path) => {
    const journal = new UpdateJournal(path);
    assert.equal(await journal.read(), undefined);
    const step = (name: string) => ({
      sign: "+" as const,
      record: parseRecord(`${name}.example. 60 IN TXT "ä\\255"`),
    });
    const ends: number[] = [];
    for (const name of ["one", "two", "three"]) {
      await journal.append(7, [step(name)]);
      ends.push(journal.size);
    }
    await journal.close();
    const whole = readFileSync(path);
    assert.equal(whole.length, ends[2]);
    for (let length = 0; length <= whole.length; length++) {
      writeFileSync(path, whole.subarray(0, length));
      const contents = await journal.read();
      const frames = ends.filter((end) => end <= length).length;
      assert.equal(contents?.steps.length ?? 0, frames, `cut at ${length}`);
      // What comes next stands behind the last whole frame.
      if (length % 7 === 0) {
        await journal.append(7, [step("more")]);
        assert.equal((await journal.read())?.steps.length, frames + 1);
      }
      await journal.close();
    }
  });
});

test("a file that is no journal is left alone and named", async () => {
  await inFolder(async (path) => {
    writeFileSync(path, "$ORIGIN example.\n@ SOA a b 1 2 3 4 5\n and more of the same\n");
    await assert.rejects(new UpdateJournal(path).read(), (error) => error instanceof JournalError);
    assert.match(readFileSync(path, "utf8"), /^\$ORIGIN/);
  });
});

test("a journal that is deleted under the server is there again with the next update, whole", async () => {
  await inFolder(async (path) => {
    const step = (name: string) => ({
      sign: "+" as const,
      record: parseRecord(`${name}.example. 60 IN A 192.0.2.1`),
    });
    const journal = new UpdateJournal(path);
    await journal.read();
    for (const name of ["one", "two", "three"]) {
      await journal.append(7, [step(name)]);
      rmSync(path);
    }
    await journal.append(7, [step("four")]);
    await journal.close();
    const names = (await journal.peek())?.steps.map(({ record }) => record.name.toString());
    assert.deepEqual(names, ["one.example.", "two.example.", "three.example.", "four.example."]);
  });
});

test("nothing is added to a journal that somebody else has written to", async () => {
  await inFolder(async (path) => {
    const journal = new UpdateJournal(path);
    await journal.read();
    const step = { sign: "+" as const, record: parseRecord("one.example. 60 IN A 192.0.2.1") };
    await journal.append(7, [step]);
    writeFileSync(path, "x");
    await assert.rejects(journal.append(7, [step]), /was changed by somebody else/);
    await journal.close();
  });
});
