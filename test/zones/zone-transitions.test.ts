/** A change of any size in a zone that is served: at each moment, all answers are those of one state. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import { formatRecord, Name, parseRecord, readKeyPair } from "../../src/dns/index.ts";
import { plainData } from "../../src/dns/resource-record.ts";
import { withoutRest } from "../../src/lib/time/turn-share.ts";
import type { Outcome } from "../../src/plugin/query/outcome.ts";
import { makeTestQuery } from "../../src/plugin/testing.ts";
import { ZoneAnswers } from "../../src/zones/answers/zone-answers.ts";
import { applyChange, ZoneChangeError } from "../../src/zones/changes/zone-changes.ts";
import { pendingDifference } from "../../src/zones/changes/zone-journal.ts";
import { ZoneTransition } from "../../src/zones/changes/zone-transition.ts";
import { OctetHeap } from "../../src/zones/data/octet-heap.ts";
import { type PlainRecord, RecordLog } from "../../src/zones/data/record-log.ts";
import { Zone } from "../../src/zones/data/zone.ts";
import type { ZoneChange } from "../../src/zones/data/zone-change.ts";
import { ZoneRecords } from "../../src/zones/data/zone-records.ts";
import { copyOfZone, soaRecord } from "../../src/zones/data/zone-transfer.ts";
import { signedZoneLines } from "../../src/zones/signing/zone-signing.ts";
import { newKeyFiles } from "../support/key-files.ts";
import { type RandomZone, randomZone } from "../support/random-zone.ts";
import { untilTrue } from "../support/until-true.ts";

const APEX = Name.parse("example.org.");
type Signing = "plain" | "nsec" | "nsec3";
const files = newKeyFiles("example.org.");
const key = readKeyPair(files.key, files.private);

function plain(line: string): PlainRecord {
  const record = parseRecord(line);
  const owner = record.name.toLowerCase().wire;
  return { owner, type: record.type, ttl: record.ttl, rdata: plainData(record) };
}

async function zoneOf(lines: Iterable<string>): Promise<Zone> {
  // Places that become free are given out again from the first one on.
  const [records, hashed] = [0, 0].map((least) => new ZoneRecords(APEX, new OctetHeap(512, least)));
  const zone = new Zone(APEX, records, hashed);
  for (const line of lines) zone.addPlain(plain(line));
  await zone.order();
  return zone;
}

/** The records of a zone with a serial, signatures made of what they sign: those of RRsets that stay the same stay the same. */
async function linesOf({ lines }: RandomZone, serial: number, signing: Signing): Promise<string[]> {
  const texts = lines
    .slice(1)
    .map((line) => line.replace(/ (?=(?:SOA|NS|A|AAAA|TXT|MX|SRV|DS|CNAME|DNAME) )/, " 60 IN "))
    .map((line) => line.replace(/(SOA \S+ \S+) 1 /, `$1 ${serial} `));
  if (signing === "plain") return texts;
  const options = { serial, inception: 1_700_000_000, expiration: 1_800_000_000, pause: withoutRest };
  const signed: string[] = [];
  const zone = await zoneOf(texts);
  for await (const text of signedZoneLines(zone, { ...options, keys: [key], nsec3: signing === "nsec3" }))
    signed.push(...text.split("\n").filter((line) => line !== "" && !line.startsWith(";")));
  const fields = signed.map((line) => line.split(/\s+/));
  return signed.map((line, index) => {
    const [owner, , , type, covered] = fields[index] ?? [];
    if (type !== "RRSIG") return line;
    const subject = signed.filter((_, at) => fields[at]?.[0] === owner && fields[at]?.[3] === covered);
    const digest = createHash("sha512").update(subject.join()).digest("base64");
    return line.replace(/\S+$/, digest);
  });
}

function changeOf(before: readonly string[], after: readonly string[], from: number): ZoneChange {
  const isSoa = (line: string): boolean => /\sSOA\s/.test(line) && !/RRSIG/.test(line);
  const log = (lines: readonly string[], others: readonly string[]): RecordLog => {
    const there = new Set(others);
    const made = new RecordLog();
    for (const line of new Set(lines)) if (!isSoa(line) && !there.has(line)) made.addPlain(plain(line));
    return made;
  };
  const soa = plain(after.find(isSoa) ?? assert.fail("no SOA"));
  return { from, soa, removed: log(before, after), added: log(after, before) };
}

class Questions {
  readonly #answers = new ZoneAnswers();
  readonly #questions: RandomZone["questions"];
  #next = 0;

  constructor(questions: RandomZone["questions"]) {
    this.#questions = questions;
  }

  get count(): number {
    return this.#questions.length;
  }

  /** Some of the answers, as octets, by the question. */
  ask(zone: Zone, count: number, into: Map<string, string>): void {
    for (let left = count; left > 0; left--) {
      const number = this.#next++ % (2 * this.#questions.length);
      const { name = "", type = "" } = this.#questions[number >>> 1] ?? {};
      const edns = { dnssecOk: number % 2 === 1, udpSize: 4096 };
      const query = makeTestQuery({ name, type, edns, resolve: undefined } as never, 0, (inner) =>
        inner.fail(),
      );
      // The first writer of the end of an answer decides which of two compressed forms it has.
      zone.tails.fill(undefined);
      const shown = show(this.#answers.answer(zone, query) as Outcome);
      into.set(`${name} ${type} ${edns.dnssecOk}`, shown);
    }
  }

  all(zone: Zone): Map<string, string> {
    const answers = new Map<string, string>();
    this.#next = 0;
    this.ask(zone, 2 * this.#questions.length, answers);
    return answers;
  }
}

function show(outcome: Outcome): string {
  if (outcome.kind !== "reply") return outcome.kind;
  const { bytes, start, end } = outcome.encoded;
  return `${outcome.rcode} ${outcome.flags} ${Buffer.from(bytes.subarray(start, end)).toString("hex")}`;
}

function textOf(zone: Zone): string[] {
  return [formatRecord(soaRecord(zone)), ...Array.from(copyOfZone(zone).records(), formatRecord)].sort();
}

/** What is asked in between. */
const AT_ONCE = 7;

for (const signing of ["plain", "nsec", "nsec3"] as const) {
  test(`each answer is of the state before or after a change, octet by octet: ${signing}`, async () => {
    await fc.assert(
      fc.asyncProperty(randomZone, randomZone, fc.integer({ min: 1, max: 9 }), async (one, two, portion) => {
        const before = await linesOf(one, 1, signing);
        const after = await linesOf(two, 2, signing);
        const zone = await zoneOf(before);
        const questions = new Questions([...one.questions.slice(0, 75), ...two.questions.slice(0, 75)]);
        const change = changeOf(before, after, 1);
        // A copy without readers, changed record by record.
        const model = await zone.copy(withoutRest);
        await applyChange(model, change, withoutRest);
        await model.order();
        const texts = { before: textOf(zone), after: textOf(model) };
        const states = { before: questions.all(zone), after: questions.all(model) };
        assert.deepEqual(textOf(await zoneOf(after)), texts.after);

        let expected = states.before;
        const pause = async (): Promise<void> => {
          const answers = new Map<string, string>();
          questions.ask(zone, AT_ONCE, answers);
          for (const [question, answer] of answers) assert.equal(answer, expected.get(question), question);
        };
        const isWhole = (state: "before" | "after"): void => {
          assert.deepEqual(questions.all(zone), states[state]);
          assert.deepEqual(textOf(zone), texts[state]);
          assert.equal(zone.recordCount, texts[state].length);
        };

        // A change that comes to nothing.
        const vain = new ZoneTransition(zone, portion);
        await vain.take(change, pause);
        await vain.order(pause);
        isWhole("before");
        assert.equal(
          vain.after(() => zone.serial),
          2,
        );
        await vain.undo(pause);
        isWhole("before");
        assert.equal(zone.isChanging, false);

        const lie = { ...change, removed: new RecordLog() };
        for (const record of change.removed) lie.removed.addPlain(record);
        lie.removed.addPlain(plain("nope.example.org. 60 IN A 192.0.2.1"));
        const lying = new ZoneTransition(zone, portion);
        await assert.rejects(lying.take(lie, pause), ZoneChangeError);
        await lying.undo(pause);
        isWhole("before");

        // The zone is copied during the change.
        const transfer = copyOfZone(zone).records()[Symbol.iterator]();
        const copied = [formatRecord(soaRecord(zone))];
        const copy = (most: number): void => {
          for (let left = most; left > 0; left--) {
            const { done, value } = transfer.next();
            if (done === true) return;
            copied.push(formatRecord(value));
          }
        };
        copy(portion);
        const transition = new ZoneTransition(zone, portion);
        await transition.take(change, pause);
        await transition.order(pause);
        const logs = (await pendingDifference(zone, Number.POSITIVE_INFINITY, pause)) ?? assert.fail();
        assert.deepEqual(
          [logs.removed, logs.added].map((log) => Array.from(log.records(), formatRecord).sort()),
          [change.removed, change.added].map((log) => Array.from(log.records(), formatRecord).sort()),
        );
        copy(portion);
        transition.switchOver();
        assert.deepEqual(new Set(zone.tails), new Set([undefined]));
        expected = states.after;
        isWhole("after");
        await transition.finish(pause);
        isWhole("after");
        assert.equal(zone.isChanging, zone.formerTransfers > 0);
        copy(Number.POSITIVE_INFINITY);
        assert.deepEqual(copied.sort(), texts.before);
        // The last reader has left: what it needed is put away now.
        await untilTrue(() => !zone.isChanging, { between: () => nextTurn() });
        isWhole("after");

        // There and back again, as often as one likes.
        const back = changeOf(after, before, 2);
        const heaps = [zone.records.heap, zone.hashed.heap];
        const live = (): number => heaps.reduce((sum, heap) => sum + heap.used - heap.garbage, 0);
        let [used, octets, liveOctets] = [0, 0, 0];
        for (let round = 0; round < 6; round++) {
          for (const step of [back, change]) {
            const next = new ZoneTransition(zone, portion);
            await next.take(step, withoutRest);
            await next.order(withoutRest);
            next.switchOver();
            await next.finish(withoutRest);
          }
          if (round === 1) {
            octets = zone.records.heap.used + zone.hashed.heap.used;
            used = zone.used - octets;
            liveOctets = live();
          }
        }
        assert.deepEqual(textOf(zone), texts.after);
        const octetsNow = zone.records.heap.used + zone.hashed.heap.used;
        assert.equal(zone.used - octetsNow, used);
        assert.equal(live(), liveOctets);
        // Labels and data of less than four octets are lost each time.
        assert.ok(octetsNow <= octets + 4 * 400, `${octets} octets became ${octetsNow}`);
      }),
      { numRuns: Number(process.env.PORTOLAN_RANDOM_ZONES ?? 15), endOnFailure: true },
    );
  });
}
