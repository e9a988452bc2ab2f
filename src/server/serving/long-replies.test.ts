import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  decodeMessage,
  EncodedSections,
  encodeMessage,
  Flag,
  type Message,
  Name,
  RecordType,
} from "../../dns/index.ts";
import type { Reply } from "../../plugin/query/reply.ts";
import { makeTestQuery, type QuestionOptions, records, recordText } from "../../plugin/testing.ts";
import { writeReply } from "./reply-writer.ts";

const NAME = "www.example.org.";

/** The records as an upstream sends them that compresses no name. */
function spelledOut(name: string, answer: readonly string[], additional: readonly string[]): EncodedSections {
  const bytes = encodeMessage(
    {
      id: 1,
      opcode: 0,
      flags: Flag.QR,
      rcode: 0,
      questions: [{ name: Name.parse(name), type: RecordType.A, class: 1 }],
      answer: records(...answer),
      authority: [],
      additional: records(...additional),
      edns: undefined,
    },
    { compress: false },
  );
  return EncodedSections.scan(bytes, bytes.length).encoded;
}

interface Upstream {
  readonly answer: readonly string[];
  readonly additional?: readonly string[];
  readonly question?: Partial<QuestionOptions>;
  readonly change?: (reply: Reply) => void;
}

function sent({ answer, additional = [], question, change }: Upstream): Message & { size: number } {
  const query = makeTestQuery({ name: NAME, ...question });
  const reply = query.reply({ encoded: spelledOut(NAME, answer, additional) });
  change?.(reply);
  let out = new Uint8Array(0);
  const length = writeReply(query, reply, {
    buffer(size) {
      out = new Uint8Array(size);
      return out;
    },
  });
  return { ...decodeMessage(out.subarray(0, length)), size: length };
}

const addresses = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => `${NAME} 60 IN A 10.0.${n >> 8}.${n & 255}`);

const isCut = ({ flags }: Message): boolean => (flags & Flag.TC) !== 0;

describe("a reply of an upstream that compresses no name", () => {
  test("arrives as it is if it fits", () => {
    const message = sent({ answer: addresses(10) });
    // Each owner is spelled out.
    assert.equal(message.size, 12 + 21 + 10 * (17 + 14));
    assert.equal(message.answer.length, 10);
  });

  for (const count of [16, 20, 29]) {
    test(`is compressed instead of cut: ${count} addresses`, () => {
      const message = sent({ answer: addresses(count) });
      assert.equal(message.answer.length, count);
      assert.equal(isCut(message), false);
      assert.ok(message.size <= 512);
    });
  }

  test("is compressed if OPT has no room otherwise", () => {
    const message = sent({ answer: addresses(15), question: { edns: { udpSize: 512 } } });
    assert.equal(message.answer.length, 15);
    assert.equal(isCut(message), false);
    assert.notEqual(message.edns, undefined);
  });

  test("shows the address at the end of a chain of aliases", () => {
    const names = ["www", "first", "second", "third", "fourth", "fifth"].map(
      (label) => `${label}.with-a-rather-long-name-inside-of-the-shop.svc.cluster-of-ours.example.org.`,
    );
    const chain = names.slice(1).map((name, n) => `${n === 0 ? NAME : names[n]} 5 IN CNAME ${name}`);
    const answer = [...chain, `${names.at(-1)} 5 IN A 192.0.2.1`];
    const message = sent({ answer });
    assert.deepEqual(message.answer.map(recordText), answer);
    assert.equal(isCut(message), false);
  });

  test("is cut only where compression does not help, with as many records as fit", () => {
    const message = sent({ answer: addresses(100) });
    assert.equal(message.answer.length, 29);
    assert.equal(isCut(message), true);
    const wider = sent({ answer: addresses(100), question: { edns: { udpSize: 1232 } } });
    assert.equal(wider.answer.length, 74);
    assert.equal(isCut(wider), true);
  });

  test("sets TC if only additional records are left out", () => {
    const message = sent({ answer: addresses(5), additional: addresses(100) });
    assert.equal(message.answer.length, 5);
    assert.ok(message.additional.length > 0 && isCut(message));
  });

  test("keeps a TTL set for all records, and loses no address to loadbalance", () => {
    const answer = addresses(20);
    const message = sent({
      answer,
      change(reply) {
        reply.setUniformTtl(7);
        reply.shuffle = 99;
      },
    });
    assert.deepEqual(
      message.answer.map(recordText).sort(),
      answer.map((text) => text.replace(" 60 ", " 7 ")).sort(),
    );
  });

  test("has the client's spelling of the name", () => {
    const message = sent({ answer: addresses(20), question: { name: "wWw.eXample.org." } });
    assert.ok(message.answer.every(({ name }) => String(name) === "wWw.eXample.org."));
  });
});

test("a reply that compression would make longer, as its targets must not be compressed, loses no record", () => {
  const query = makeTestQuery({ name: NAME, type: "SRV" });
  // The first owner is spelled out, which is what compression would save.
  const head = spelledOut(NAME, [`${NAME} 5 IN A 192.0.2.1`], []);
  const record = (n: number): number[] => [
    0xc0,
    12,
    0,
    33,
    0,
    1,
    0,
    0,
    0,
    5,
    0,
    10,
    0,
    0,
    0,
    0,
    0,
    n,
    1,
    97 + (n % 26),
    0xc0,
    12,
  ];
  const bytes = Uint8Array.from([
    ...head.bytes.subarray(0, head.end),
    ...Array.from({ length: 30 }, (_, n) => record(n)).flat(),
  ]);
  bytes[7] = 31;
  const out = new Uint8Array(512);
  const reply = query.reply({ encoded: EncodedSections.scan(bytes, bytes.length).encoded });
  const message = decodeMessage(out.subarray(0, writeReply(query, reply, { buffer: () => out })));
  assert.equal(message.answer.length, 1 + Math.floor((512 - head.end) / record(0).length));
  assert.equal(isCut(message), true);
});
