import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { EncodedSections, NO_SECTIONS, type RecordSections } from "./encoded-sections.ts";
import { QUESTION, records, SECTIONS, START, sent } from "./fixtures/replies.ts";
import { decodeMessage, encodeMessage, makeQuery } from "./message.ts";
import { Name } from "./name.ts";
import { A } from "./record-table.ts";
import { parseRecord } from "./resource-record.ts";

describe("EncodedSections.decode", () => {
  const { encoded } = EncodedSections.encode(QUESTION, SECTIONS);
  const questionOctets = (name: string) =>
    encodeMessage(makeQuery({ ...QUESTION, name: Name.parse(name) })).subarray(12);

  it("gives names that point to the question the requested spelling, and does not change shared octets", () => {
    const { answer, authority } = encoded.decode(questionOctets("WWW.example.ORG"));
    assert.equal(answer[0]?.name.toString(), "WWW.example.ORG.");
    assert.equal(answer[1]?.name.toString(), "app.example.ORG.");
    assert.equal(authority[0]?.name.equals(Name.parse("example.org")), true);
    assert.equal(encoded.decode().answer[0]?.name.toString(), "www.Example.org.");
  });

  it("keeps its own spelling if the question has another length", () => {
    assert.deepEqual(encoded.decode(questionOctets("w.example.org")), encoded.decode());
    assert.deepEqual(EncodedSections.empty(START).decode(questionOctets("www.example.org")), NO_SECTIONS);
  });
});

describe("EncodedSections.minimalTtl", () => {
  it("is the smallest of all sections, or the ceiling", () => {
    const { encoded } = EncodedSections.encode(QUESTION, SECTIONS);
    assert.equal(encoded.minimalTtl(3600), 30);
    assert.equal(encoded.minimalTtl(10), 10);
    const { encoded: long } = EncodedSections.encode(QUESTION, {
      ...NO_SECTIONS,
      answer: records("a. 4294967295 A 192.0.2.1"),
    });
    assert.equal(long.minimalTtl(3600), 3600);
    assert.equal(long.minimalTtl(Number.POSITIVE_INFINITY), 4294967295);
  });
});

describe("EncodedSections.answerOnly", () => {
  it("has the answer section in the same octets", () => {
    const { encoded } = EncodedSections.encode(QUESTION, SECTIONS);
    const answers = encoded.answerOnly();
    assert.equal(answers.bytes, encoded.bytes);
    assert.deepEqual([answers.answerCount, answers.authorityCount, answers.additionalCount], [2, 0, 0]);
    assert.equal(answers.end, encoded.recordStarts[2]);
    assert.deepEqual(answers.decode().answer, encoded.decode().answer);
    assert.equal(answers.answerOnly(), answers);
    assert.equal(answers.minimalTtl(3600), 30);
  });

  it("of no answers has no octets", () => {
    const { encoded } = EncodedSections.encode(QUESTION, { ...SECTIONS, answer: [] });
    const answers = encoded.answerOnly();
    assert.deepEqual([answers.count, answers.start, answers.end], [0, START, START]);
  });
});

describe("EncodedSections.addressRuns", () => {
  const runs = (sections: Partial<RecordSections>) => {
    return EncodedSections.encode(QUESTION, { ...NO_SECTIONS, ...sections }).encoded.addressRuns;
  };
  const first = START + 12;

  it("finds consecutive addresses of one owner", () => {
    const answer = records(
      "www.example.org. 5 A 192.0.2.1",
      "www.example.org. 6 A 192.0.2.2",
      "www.example.org. 7 A 192.0.2.3",
    );
    assert.deepEqual(runs({ answer }), [{ first, stride: 16, size: 4, count: 3 }]);
    const v6 = records("www.example.org. 5 AAAA ::1", "www.example.org. 5 AAAA ::2");
    assert.deepEqual(runs({ answer: v6 }), [{ first, stride: 28, size: 16, count: 2 }]);
  });

  it("separates them by type, owner, class and section, and ignores a single one", () => {
    const a1 = parseRecord("www.example.org. A 192.0.2.1");
    const a2 = parseRecord("www.example.org. A 192.0.2.2");
    const b1 = parseRecord("www.example.org. AAAA ::1");
    const b2 = parseRecord("www.example.org. AAAA ::2");
    const other = parseRecord("example.org. A 192.0.2.3");
    const chaos = parseRecord("www.example.org. CLASS2 A 192.0.2.4");
    assert.deepEqual(runs({ answer: [a1, b1, a2, other] }), []);
    assert.deepEqual(runs({ answer: [a1, chaos] }), []);
    assert.deepEqual(runs({ answer: [a1], authority: [a2], additional: [a1] }), []);
    assert.deepEqual(
      runs({ answer: [a1, a2], additional: [b1, b2, other] }).map(({ size, count }) => [size, count]),
      [
        [4, 2],
        [16, 2],
      ],
    );
  });

  it("skips other records, and addresses without RDATA", () => {
    const empty = { ...A.create(QUESTION.name, 5, { address: "" }), data: { octets: new Uint8Array(0) } };
    const [cname, ...addresses] = records(
      "www.example.org. CNAME app.example.org.",
      "app.example.org. A 192.0.2.1",
      "app.example.org. A 192.0.2.2",
    );
    assert.ok(cname);
    assert.deepEqual(runs({ answer: [empty, empty] }), []);
    assert.deepEqual(
      runs({ answer: [cname, ...addresses] }).map(({ count }) => count),
      [2],
    );
  });

  it("returns places whose octets may be swapped", () => {
    const answer = records("www.example.org. A 192.0.2.1", "www.example.org. A 192.0.2.2");
    const { encoded } = EncodedSections.encode(QUESTION, { ...NO_SECTIONS, answer });
    const message = sent(encoded);
    const [run] = encoded.addressRuns;
    assert.ok(run);
    message.copyWithin(run.first, run.first + run.stride, run.first + run.stride + run.size);
    assert.deepEqual(
      decodeMessage(message).answer.map((record) => record.data),
      [{ address: "192.0.2.2" }, { address: "192.0.2.2" }],
    );
    assert.equal(encoded.runTable, encoded.runTable);
  });
});
