import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CNAME, EncodedSections, Name } from "../../dns/index.ts";
import { ChangingNames } from "../../plugin/contract/changing-names.ts";
import { makeTestQuery, records } from "../../plugin/testing.ts";
import { MentionedNames } from "./mentioned-names.ts";

const LABELS = ["a", "B", "web", "SVC", "cluster"];
const name = fc
  .array(fc.constantFrom(...LABELS), { minLength: 1, maxLength: 4 })
  .map((labels) => `${labels.join(".")}.`);
const record = fc.record({ owner: name, target: name, isAlias: fc.boolean() });

function changing(...zones: readonly string[]): ChangingNames {
  const names = new ChangingNames(() => []);
  names.addZones(zones.map((zone) => Name.parse(zone)));
  return names;
}

function textsOf({ count, octets, starts }: MentionedNames): string[] {
  return Array.from({ length: count }, (_, index) =>
    Name.fromCheckedWire(Uint8Array.from(octets.subarray(starts[index], starts[index + 1]))).toString(),
  ).sort();
}

test("an answer mentions names in changing zones, except those that change with its question", () => {
  fc.assert(
    fc.property(
      name,
      fc.array(record, { maxLength: 8 }),
      fc.array(record, { maxLength: 3 }),
      fc.array(name, { maxLength: 3 }),
      (question, answer, additional, zones) => {
        const asked = makeTestQuery({ name: question });
        const mentioned = new MentionedNames(changing(...zones));
        const lines = answer.map(({ owner, target, isAlias }) =>
          isAlias ? `${owner} 300 IN CNAME ${target}` : `${owner} 300 IN TXT ${target}`,
        );
        const { encoded } = asked.reply({
          answer: records(...lines),
          authority: records("a. 300 IN NS b.a."),
          additional: records(
            ...additional.map(({ owner, isAlias }) => `${owner} 300 IN ${isAlias ? "A 192.0.2.1" : "TXT x"}`),
          ),
        });
        const changes = (text: string): boolean =>
          zones.some((zone) => Name.parse(text).isAtOrBelow(Name.parse(zone)));
        const nearest = (text: string): string | undefined =>
          zones
            .filter((zone) => Name.parse(text).isAtOrBelow(Name.parse(zone)))
            .sort((one, other) => other.split(".").length - one.split(".").length)[0]
            ?.toLowerCase();
        const seen = answer.flatMap(({ owner, target, isAlias }) => (isAlias ? [owner, target] : [owner]));
        for (const { owner, isAlias } of additional)
          if (isAlias && nearest(owner) !== nearest(question)) seen.push(owner);
        const expected = new Set(
          seen
            .filter((text) => changes(text) && !asked.name.isAtOrBelow(Name.parse(text)))
            .map((text) => text.toLowerCase()),
        );
        assert.equal(mentioned.read(encoded, asked), expected.size < 16);
        if (expected.size < 16) assert.deepEqual(textsOf(mentioned), [...expected].sort());
      },
    ),
  );
});

test("addresses beside an answer count unless a plugin tells of them together with the question", () => {
  const names = changing("whole.");
  names.addZones(
    ["alone.", "whole.alone."].map((zone) => Name.parse(zone)),
    { tellsOfAdditions: false },
  );
  names.addZones(["whole.", "alone."].map((zone) => Name.parse(zone)));
  const mentioned = new MentionedNames(names);
  const read = (question: string, ...owners: readonly string[]): string[] => {
    const asked = makeTestQuery({ name: question, type: "SRV" });
    const additional = records(...owners.map((owner) => `${owner} 300 IN A 192.0.2.1`));
    const answer = records(`${question} 300 IN SRV 1 1 1 a.`);
    assert.equal(mentioned.read(asked.reply({ answer, additional }).encoded, asked), true);
    return textsOf(mentioned);
  };
  assert.deepEqual(read("a.whole.", "b.whole.", "c.a.whole.", "d.alone.", "e."), ["d.alone."]);
  assert.deepEqual(read("a.Alone.", "b.alone.", "C.A.alone.", "d.whole."), ["b.alone.", "d.whole."]);
  assert.deepEqual(read("a.alone.", "b.whole.alone."), ["b.whole.alone."]);
});

test("more than 15 names are too many, however long they are", () => {
  const mentioned = new MentionedNames(changing("."));
  const asked = makeTestQuery({ name: "www.example.org." });
  const long = (index: number): string =>
    `${"x".repeat(63)}.${"y".repeat(63)}.${"z".repeat(63)}.${"w".repeat(57)}.${String(index).padStart(3, "0")}.`;
  const read = (count: number): boolean => {
    const answer = Array.from({ length: count }, (_, index) =>
      CNAME.create(asked.name, 300, { target: Name.parse(long(index)) }),
    );
    return mentioned.read(asked.reply({ answer }).encoded, asked);
  };
  assert.equal(read(15), true);
  assert.deepEqual(
    textsOf(mentioned),
    Array.from({ length: 15 }, (_, index) => long(index)),
  );
  assert.equal(read(16), false);
  assert.equal(read(1), true);
  assert.equal(mentioned.count, 1);
});

test("an invalid target is skipped", () => {
  const mentioned = new MentionedNames(changing("."));
  const asked = makeTestQuery({ name: "www.example.org." });
  const { encoded } = asked.reply({ answer: records("www.example.org. 300 IN CNAME a.b.c.example.net.") });
  for (let at = encoded.start + 12; at < encoded.end; at++)
    for (const octet of [0x3f, 0x40, 0xc0, 0xff]) {
      const bytes = Uint8Array.from(encoded.bytes);
      bytes[at] = octet;
      const { start, end, recordStarts, typeOffsets } = encoded;
      mentioned.read(
        EncodedSections.of({ bytes, start, end, counts: [1, 0, 0], recordStarts, typeOffsets }),
        asked,
      );
      assert.ok(mentioned.count <= 1);
    }
});

test("without changing zones no names are collected", () => {
  const mentioned = new MentionedNames(changing());
  const asked = makeTestQuery({ name: "www.example.org." });
  const { encoded } = asked.reply({ answer: records("www.example.org. 300 IN CNAME web.cluster.local.") });
  assert.equal(mentioned.read(encoded, asked), true);
  assert.equal(mentioned.count, 0);
});
