import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatRecord, parseRecord } from "../../dns/resource-record.ts";
import { withoutRest } from "../../lib/time/turn-share.ts";
import type { ZoneStep } from "./edited-zone.ts";
import { journalFrame, journalFrames, journalHead, readJournal } from "./journal-frames.ts";

const step = (sign: "+" | "-", text: string): ZoneStep => ({ sign, record: parseRecord(text) });
const serial = (number: number): string =>
  `example.org. 60 IN SOA ns.example.org. hm.example.org. ${number} 2 3 4 5`;
/** Three updates. A text may hold any octet, the first ones of a frame included. */
const UPDATES: readonly (readonly ZoneStep[])[] = [
  [step("-", serial(7)), step("+", serial(8)), step("+", "a.example.org. 60 IN A 192.0.2.1")],
  [
    step("-", serial(8)),
    step("+", serial(9)),
    step("+", 'b.example.org. 5 IN TXT "\\000\\000\\000\\010+\\255" ""'),
  ],
  [step("-", serial(9)), step("+", serial(10)), step("-", "a.example.org. 60 IN A 192.0.2.1")],
];
const lines = (steps: readonly ZoneStep[]): string[] =>
  steps.map(({ sign, record }) => sign + formatRecord(record));
const ALL = lines(UPDATES.flat());
const journal = (): Buffer => Buffer.concat([journalHead(7), ...UPDATES.map(journalFrame)]);

async function read(octets: Buffer) {
  const contents = await readJournal(octets, withoutRest);
  assert.ok(contents !== undefined && contents !== "none");
  return { ...contents, lines: lines(contents.steps) };
}

test("what is written is read again", async () => {
  const { base, lines: found, damage, torn } = await read(journal());
  assert.deepEqual({ base, found, damage, torn }, { base: 7, found: ALL, damage: [], torn: 0 });
});

test("many steps become several frames, with a pause between two", async () => {
  let pauses = 0;
  const steps = Array.from({ length: 1_001 }, (_, n) => step("+", `n${n}.example.org. 60 IN A 192.0.2.1`));
  const frames = await journalFrames(steps, async () => void pauses++);
  assert.deepEqual([frames.length, pauses], [3, 2]);
  assert.deepEqual((await read(Buffer.concat([journalHead(1), ...frames]))).lines, lines(steps));
});

test("a journal that ends anywhere has whole updates, and what is left is torn and not damaged", async () => {
  const whole = journal();
  const head = journalHead(7).length;
  for (let length = head; length < whole.length; length++) {
    const { lines: found, damage, torn } = await read(whole.subarray(0, length));
    const updates = found.length / 3;
    assert.ok(Number.isInteger(updates), `${found.length} steps at ${length}`);
    assert.deepEqual(found, ALL.slice(0, found.length));
    assert.deepEqual(damage, []);
    const read3 = UPDATES.slice(0, updates).reduce((sum, steps) => sum + journalFrame(steps).length, head);
    assert.equal(torn, length - read3);
  }
});

test("a wrong octet costs its own update, and is reported", async () => {
  const whole = journal();
  const head = journalHead(7).length;
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: head, max: whole.length - 1 }),
      fc.integer({ min: 1, max: 255 }),
      async (at, bits) => {
        const octets = Buffer.from(whole);
        octets[at] = (octets[at] ?? 0) ^ bits;
        const { base, lines: found, damage, torn } = await read(octets);
        const bad = UPDATES.findIndex((_, index) => at < endOf(index));
        assert.equal(base, 7);
        assert.deepEqual(found, lines(UPDATES.filter((_, index) => index !== bad).flat()));
        const lost = damage.reduce((sum, { length }) => sum + length, torn);
        assert.equal(lost, endOf(bad) - endOf(bad - 1));
      },
    ),
  );
  function endOf(index: number): number {
    return UPDATES.slice(0, index + 1).reduce((sum, steps) => sum + journalFrame(steps).length, head);
  }
});

test("a damaged head costs nothing: the first change of the serial shows the base", async () => {
  const octets = journal();
  octets[3] = 0xff;
  const { base, lines: found, damage } = await read(octets);
  assert.deepEqual([base, found], [7, ALL]);
  assert.equal(damage.length, 1);
});

test("empty files and beginnings of a head hold nothing; other files are no journals", async () => {
  const head = journalHead(7);
  for (let length = 0; length < head.length; length++)
    assert.equal(await readJournal(head.subarray(0, length), withoutRest), undefined);
  for (const text of ["bbolt", "; a zone file\n", "portolan zone journal 2\nbase 7\n"])
    assert.equal(await readJournal(Buffer.from(text), withoutRest), "none");
  const zeros = await read(Buffer.alloc(500));
  assert.deepEqual([zeros.base, zeros.lines, zeros.damage], [undefined, [], [{ at: 0, length: 500 }]]);
});
