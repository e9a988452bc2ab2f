import assert from "node:assert/strict";
import { test } from "node:test";
import { compressed, isCompressible } from "./compression.ts";
import { EncodedSections } from "./encoded-sections.ts";
import { encodeMessage, type Message } from "./message.ts";
import { Name } from "./name.ts";
import { formatRecord, parseRecord } from "./resource-record.ts";
import { RecordType } from "./type-names.ts";

const QUESTION = { name: Name.parse("www.example.org."), type: RecordType.A, class: 1 };

/** The records as received from an upstream. */
function received(compress: boolean, ...answer: readonly string[]): EncodedSections {
  const message: Message = {
    id: 1,
    opcode: 0,
    flags: 0,
    rcode: 0,
    questions: [QUESTION],
    answer: answer.map((text) => parseRecord(text)),
    authority: [],
    additional: [],
    edns: undefined,
  };
  const bytes = encodeMessage(message, { compress });
  return EncodedSections.scan(bytes, bytes.length).encoded;
}

const SETS: Readonly<Record<string, readonly string[]>> = {
  "addresses of the question": ["www.example.org. 5 IN A 192.0.2.1", "www.example.org. 5 IN A 192.0.2.2"],
  "an alias within its zone": ["www.example.org. 5 IN CNAME web.example.org."],
  "an alias to elsewhere, and from there": [
    "www.example.org. 5 IN CNAME edge.example.net.",
    "edge.example.net. 5 IN CNAME e1.example.net.",
    "e1.example.net. 5 IN A 192.0.2.1",
  ],
  "mail servers": ["www.example.org. 5 IN MX 10 mx.example.com."],
  "an SOA record": ["example.org. 5 IN SOA ns.example.net. host.example.net. 1 2 3 4 5"],
  "the target of a service, which no pointer shortens": ["www.example.org. 5 IN SRV 0 0 1 a.example.org."],
};

for (const [title, answer] of Object.entries(SETS)) {
  test(`distinguishes uncompressed names from compressed ones: ${title}`, () => {
    const plain = received(false, ...answer);
    const short = received(true, ...answer);
    assert.equal(isCompressible(plain, plain.bytes, plain.count), true);
    assert.equal(isCompressible(short, short.bytes, short.count), false);
    const made = compressed(plain, QUESTION, plain.bytes.subarray(12, plain.start), 0xffff);
    assert.equal(made.end, short.end);
    assert.deepEqual(made.decode().answer.map(formatRecord), short.decode().answer.map(formatRecord));
  });
}

test("the root and names of other top-level domains gain nothing", () => {
  const plain = received(false, ". 5 IN NS a.example.com.", ". 5 IN NS b.example.net.");
  assert.equal(isCompressible(plain, plain.bytes, plain.count), false);
});

test("examines only the first records", () => {
  const plain = received(false, ". 5 IN A 192.0.2.1", "www.example.org. 5 IN A 192.0.2.2");
  assert.equal(isCompressible(plain, plain.bytes, 1), false);
  assert.equal(isCompressible(plain, plain.bytes, 2), true);
});

test("encodes no more records than fit", () => {
  const many = Array.from({ length: 500 }, (_, n) => `www.example.org. 5 IN A 192.0.${n >> 8}.${n & 255}`);
  const plain = received(false, ...many);
  const made = compressed(plain, QUESTION, plain.bytes.subarray(12, plain.start), 512);
  assert.ok(made.count < 50 && made.end > 512, `${made.count} records, ${made.end} octets`);
});
