import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { makeQuery } from "../../dns/message.ts";
import { Name } from "../../dns/name.ts";
import { Rcode } from "../../dns/numbers.ts";
import { dataFromWire, formatRecord, parseRecord, plainData } from "../../dns/resource-record.ts";
import { RecordType } from "../../dns/type-names.ts";
import { applyChange, isMissingFrom } from "../changes/zone-changes.ts";
import { partOf } from "../changes/zone-part.ts";
import { Zone } from "../data/zone.ts";
import { copyOfZone } from "../data/zone-transfer.ts";
import { EditedZone } from "./edited-zone.ts";
import { type JournalContents, journalFrame, journalHead, readJournal } from "./journal-frames.ts";
import { changeOf, withoutDetours } from "./steps.ts";
import { JournalError, UpdateJournal } from "./update-journal.ts";
import { checkUpdate } from "./update-message.ts";

async function atOnce(): Promise<void> {
  // Nothing else waits for a turn.
}

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

test("simplified steps lead to the same zone, as often as a journal is compacted", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(record, { maxLength: 4 }),
      fc.array(change, { maxLength: 30 }),
      fc.nat(30),
      async (base, changes, half) => {
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
            compacted = await withoutDetours([...compacted, ...edited.steps.slice(seen)], atOnce);
            seen = edited.steps.length;
          }
        }
        compacted = await withoutDetours([...compacted, ...edited.steps.slice(seen)], atOnce);
        const repeated = new EditedZone(zoneOf(base));
        for (const step of compacted) repeated.repeat(step);
        assert.deepEqual(linesOf(repeated.zone), linesOf(edited.zone));
      },
    ),
    { numRuns: 500 },
  );
});

test("records are equal whatever the case of their names, but not whatever the case of their text", () => {
  const edited = new EditedZone(
    zoneOf(["s.example. 60 IN SRV 1 1 1 Host.example.", 't.example. 60 IN TXT "Text"']),
  );
  const all = (): string[] => linesOf(edited.zone).slice(1);
  edited.add(parseRecord("s.example. 60 IN SRV 1 1 1 hOST.example."));
  edited.add(parseRecord('t.example. 60 IN TXT "tEXT"'));
  assert.equal(all().length, 3);
  // An existing record gives its TTL to all of them.
  edited.add(parseRecord('t.example. 90 IN TXT "Text"'));
  assert.deepEqual(
    all().map((line) => line.split("\t")[1]),
    ["60", "90", "90"],
  );
  edited.remove(parseRecord("S.example. 60 IN SRV 1 1 1 HOST.EXAMPLE."));
  edited.remove(parseRecord('t.example. 60 IN TXT "TEXT"'));
  assert.equal(all().length, 2);
  edited.undo(0);
  const data = new Set(all().map((line) => line.split("\t")[4]));
  assert.deepEqual(data, new Set(['"Text"', "1 1 1 Host.example."]));
});

test("steps become one change, with the same result in place and on a copy, and reverted steps leave no trace", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(record, { maxLength: 4 }),
      fc.array(change, { maxLength: 30 }),
      fc.nat(30),
      async (base, changes, mark) => {
        const zone = zoneOf(base);
        const before = linesOf(zone);
        const edited = new EditedZone(zone);
        let [half, middle] = [0, before];
        for (const [index, { kind, line }] of changes.entries()) {
          if (index === mark) [half, middle] = [edited.steps.length, linesOf(zone)];
          const parsed = parseRecord(line);
          if (kind === "add") edited.add(parsed);
          else if (kind === "remove") edited.remove(parsed);
          else if (kind === "removeRrset") edited.removeRrset(parsed.name, parsed.type);
          else edited.advanceSerial(edited.serial);
        }
        const after = linesOf(zone);
        const steps = [...edited.steps];
        edited.undo(half);
        assert.deepEqual(linesOf(zone), middle);
        edited.undo(0);
        assert.deepEqual(linesOf(zone), before);
        const copy = await zone.copy(atOnce);
        const change = await changeOf(zone, steps, atOnce);
        assert.equal(isMissingFrom(zone, change), undefined);
        zone.amend(change);
        assert.deepEqual(linesOf(zone), after);
        await applyChange(copy, change, atOnce);
        assert.deepEqual(linesOf(copy), after);
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

test("a journal cut off anywhere has the frames before the cut", async () => {
  await inFolder(async (path) => {
    const journal = new UpdateJournal(path, atOnce);
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
      // New frames follow the last complete one.
      if (length % 7 === 0) {
        await journal.append(7, [step("more")]);
        assert.equal((await journal.read())?.steps.length, frames + 1);
      }
      await journal.close();
    }
  });
});

test("a file that is not a journal is left alone and named", async () => {
  await inFolder(async (path) => {
    writeFileSync(path, "$ORIGIN example.\n@ SOA a b 1 2 3 4 5\n and more of the same\n");
    await assert.rejects(new UpdateJournal(path, atOnce).read(), (error) => error instanceof JournalError);
    assert.match(readFileSync(path, "utf8"), /^\$ORIGIN/);
  });
});

test("a journal that is deleted under the server is restored, whole, with the next update", async () => {
  await inFolder(async (path) => {
    const step = (name: string) => ({
      sign: "+" as const,
      record: parseRecord(`${name}.example. 60 IN A 192.0.2.1`),
    });
    const journal = new UpdateJournal(path, atOnce);
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

test("nothing is added to a journal that another process has written to", async () => {
  await inFolder(async (path) => {
    const journal = new UpdateJournal(path, atOnce);
    await journal.read();
    const step = { sign: "+" as const, record: parseRecord("one.example. 60 IN A 192.0.2.1") };
    await journal.append(7, [step]);
    writeFileSync(path, "x");
    await assert.rejects(journal.append(7, [step]), /was changed by another process/);
    await journal.close();
  });
});

/** Five frames of one step each, and their ends. */
async function fiveFrames(path: string): Promise<number[]> {
  const journal = new UpdateJournal(path, atOnce);
  await journal.read();
  const ends: number[] = [];
  for (const [index, name] of FIVE.entries()) {
    const serial = index + 7;
    const steps = [
      { sign: "-", record: parseRecord(`example. 60 IN SOA ns. host. ${serial} 2 3 4 5`) },
      { sign: "+", record: parseRecord(`${name}.example. 60 IN TXT "${"x".repeat(200)}"`) },
      { sign: "+", record: parseRecord(`example. 60 IN SOA ns. host. ${serial + 1} 2 3 4 5`) },
    ] as const;
    await journal.append(7, steps);
    ends.push(journal.size);
  }
  await journal.close();
  return ends;
}

const FIVE = ["one", "two", "three", "four", "five"];

function namesOf(contents: JournalContents | undefined): (string | undefined)[] {
  const added = contents?.steps.filter(({ sign, record }) => sign === "+" && record.type === RecordType.TXT);
  return added?.map(({ record }) => record.name.toString().split(".")[0]) ?? [];
}

test("a journal damaged anywhere has all other frames, and is kept as it was", async () => {
  await inFolder(async (path) => {
    const ends = await fiveFrames(path);
    const whole = readFileSync(path);
    const headEnd = whole.indexOf("\n", whole.indexOf("\n") + 1) + 1;
    const starts = [headEnd, ...ends];
    for (let at = 0; at < whole.length; at += 7) {
      const damaged = Buffer.from(whole);
      damaged[at] = (damaged[at] ?? 0) ^ 0x5a;
      writeFileSync(path, damaged);
      const journal = new UpdateJournal(path, atOnce);
      const contents = await journal.read();
      const hit = starts.findLastIndex((start) => start <= at);
      const isLastLength = hit === 4 && at < (starts[4] ?? 0) + 4;
      assert.deepEqual(namesOf(contents), at < headEnd ? FIVE : FIVE.toSpliced(hit, 1), `octet ${at}`);
      assert.equal(contents?.base, 7, `octet ${at}`);
      // The last length may be from an interrupted write; nothing else may.
      if (!isLastLength) {
        assert.equal(contents?.damage.length, 1, `octet ${at}`);
        const aside = contents.keptAside ?? "";
        assert.deepEqual(readFileSync(aside), damaged);
        rmSync(aside);
      }
      // Later writes find a complete journal.
      await journal.append(7, [{ sign: "+", record: parseRecord('six.example. 60 IN TXT "y"') }]);
      const again = await journal.read();
      assert.deepEqual(again?.damage, []);
      assert.equal(namesOf(again).at(-1), "six");
      await journal.close();
    }
  });
});

test("several damaged files are all kept", async () => {
  await inFolder(async (path) => {
    const kept = new Set<string>();
    for (let round = 0; round < 12; round++) {
      rmSync(path, { force: true });
      const [end = 0] = await fiveFrames(path);
      const octets = readFileSync(path);
      octets.fill(round, end - 10, end + 10);
      writeFileSync(path, octets);
      const journal = new UpdateJournal(path, atOnce);
      const contents = await journal.read();
      await journal.close();
      assert.deepEqual(namesOf(contents), ["three", "four", "five"]);
      kept.add(contents?.keptAside ?? "");
    }
    assert.equal(kept.size, 10);
  });
});

test("a frame inside of a record's text is not read as a frame", async () => {
  await inFolder(async (path) => {
    await fiveFrames(path);
    const inner = readFileSync(path).subarray(33);
    const journal = new UpdateJournal(path, atOnce);
    await journal.read();
    const name = Name.parse("trap.example.");
    const octets = Buffer.concat(
      Array.from({ length: Math.ceil(inner.length / 255) }, (_, index) => {
        const part = inner.subarray(index * 255, index * 255 + 255);
        return Buffer.concat([Buffer.of(part.length), part]);
      }),
    );
    const record = {
      name,
      type: RecordType.TXT,
      class: 1,
      ttl: 60,
      data: dataFromWire(RecordType.TXT, octets),
    };
    const start = journal.size;
    await journal.append(7, [{ sign: "+", record }]);
    await journal.append(7, [{ sign: "+", record: parseRecord('six.example. 60 IN TXT "y"') }]);
    const damaged = readFileSync(path);
    damaged.fill(1, start, start + 8);
    writeFileSync(path, damaged);
    assert.deepEqual(namesOf(await journal.read()), [...FIVE, "six"]);
    await journal.close();
  });
});

test("an update of a part of a zone has the same result as one of the whole", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(record, { maxLength: 8 }),
      fc.array(change, { maxLength: 12 }),
      async (base, changes) => {
        const zone = zoneOf(base);
        const before = linesOf(zone);
        const names = changes.map(({ line }) => parseRecord(line).name);
        const part = new EditedZone(await partOf(zone, [...names, Name.parse("elsewhere.test.")], atOnce));
        const whole = new EditedZone(await zone.copy(atOnce));
        for (const edited of [part, whole]) {
          for (const { kind, line } of changes) {
            const parsed = parseRecord(line);
            if (kind === "add") edited.add(parsed);
            else if (kind === "remove") edited.remove(parsed);
            else if (kind === "removeRrset") edited.removeRrset(parsed.name, parsed.type);
            else edited.advanceSerial(edited.serial);
          }
        }
        assert.deepEqual(part.steps, whole.steps);
        assert.deepEqual(linesOf(zone), before);
      },
    ),
    { numRuns: 200 },
  );
});

test("long lists of steps are processed in portions", async () => {
  const steps = Array.from({ length: 5_000 }, (_, index) => ({
    sign: index % 3 === 0 ? ("-" as const) : ("+" as const),
    record: parseRecord(`h${index % 2_000}.example. 60 IN A 192.0.2.${index % 250}`),
  }));
  let pauses = 0;
  const pause = async (): Promise<void> => {
    pauses++;
  };
  const left = await withoutDetours(steps, pause);
  assert.ok(pauses >= 50, `${pauses} pauses`);
  assert.ok(left.length > 0 && left.length < steps.length);
  pauses = 0;
  const frames = steps.map((step) => journalFrame([step]));
  const contents = await readJournal(Buffer.concat([journalHead(1), ...frames]), pause);
  assert.ok(contents !== undefined && contents !== "none" && contents.steps.length === steps.length);
  assert.ok(pauses >= 50, `${pauses} pauses`);
});

test("an update may not add a DNAME that hides all names of the zone, and one below the apex is accepted", () => {
  const rcodeOf = (line: string): number => {
    const record = parseRecord(line);
    const message = makeQuery({ name: APEX, type: RecordType.SOA });
    return checkUpdate({ ...message, authority: [record] }, APEX);
  };
  assert.equal(rcodeOf("example. 60 IN DNAME other.test."), Rcode.REFUSED);
  assert.equal(rcodeOf("EXAMPLE. 60 IN DNAME other.test."), Rcode.REFUSED);
  assert.equal(rcodeOf("a.example. 60 IN DNAME other.test."), Rcode.NOERROR);
});
