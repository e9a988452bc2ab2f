/** Replies to datagrams use shared buffers: no reply may show the octets of another. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { anyMessage } from "../../dns/fixtures/arbitraries.ts";
import { encodeMessage, Rcode, WireError } from "../../dns/index.ts";
import { MAX_UNPACKED_OCTETS } from "../../dns/wire-reader.ts";
import { FramePool } from "../../plugin/packed/frames.ts";
import type { Reply } from "../../plugin/query/reply.ts";
import { makeTestQuery, records } from "../../plugin/testing.ts";
import { lentReply, replyFrom } from "./forwarded-reply.ts";

/** The buffer that receives all datagrams. */
const buffer = new Uint8Array(0x1_0000);
const query = makeTestQuery({ name: "www.example.org.", edns: {} });
const { question } = query;

function received(frames: FramePool, packet: Uint8Array): Reply | undefined {
  buffer.set(packet);
  const reply = lentReply(buffer, packet.length, query, false, frames);
  buffer.fill(0xff);
  return reply;
}

function packetWith(...lines: string[]): Uint8Array {
  const answer = records(...lines);
  return encodeMessage({ ...usual, questions: [question], answer });
}

const usual = {
  id: 1,
  flags: 0x8180,
  opcode: 0,
  rcode: Rcode.NOERROR,
  authority: [],
  additional: [],
  edns: undefined,
};
const ONE = packetWith("www.example.org. 300 IN A 192.0.2.1");
const TWO = packetWith("www.example.org. 300 IN A 192.0.2.2");

function addressOf(reply: Reply | undefined): unknown {
  return reply?.answer[0]?.data;
}

test("reads the same as a reply with its own octets, or leaves it to the other reader", () => {
  const frames = new FramePool();
  let lent = 0;
  const property = fc.property(anyMessage, (message) => {
    const packet = encodeMessage({ ...message, opcode: 0, questions: [question] });
    const reply = received(frames, packet);
    if (reply === undefined) return;
    lent++;
    const own = replyFrom(packet.slice(), query, true, false);
    assert.deepEqual([reply.rcode, reply.flags, reply.edns], [own.rcode, own.flags, own.edns]);
    assert.deepEqual(reply.records, own.records);
  });
  fc.assert(property, { numRuns: 300 });
  assert.ok(lent > 200, `${lent}`);
});

test("octets are reused once the reply is sent, and not before", () => {
  const frames = new FramePool();
  const first = received(frames, ONE);
  const second = received(frames, TWO);
  assert.notEqual(first?.sections, second?.sections);
  const sections = second?.sections;
  second?.release();
  assert.equal(received(frames, TWO)?.sections, sections);
  assert.deepEqual(addressOf(first), { address: "192.0.2.1" });
});

test("a plugin that holds octets keeps them", () => {
  const frames = new FramePool();
  const first = received(frames, ONE);
  const held = first?.encoded;
  first?.release();
  for (let count = 0; count < 20; count++) received(frames, TWO)?.release();
  assert.equal(held?.bytes[held.end - 1], 1);
});

test("a reply that is left to the other reader returns its buffer", () => {
  const frames = new FramePool();
  const first = received(frames, ONE);
  const sections = first?.sections;
  first?.release();
  const malformed = packetWith("www.example.org. 300 IN TXT a");
  malformed[malformed.length - 2] = 9;
  for (const odd of [malformed, ONE.subarray(0, ONE.length - 1), Uint8Array.of(...ONE, 0)])
    assert.equal(received(frames, odd), undefined);
  assert.equal(received(frames, TWO)?.sections, sections);
});

/** A reply whose records all point at the question, a name of 230 octets. */
function pointing(count: number, type: "owners alone" | "owners and RDATA"): Uint8Array {
  const name = Buffer.concat([
    ...Array.from({ length: 114 }, () => Buffer.of(1, 0x61)),
    Buffer.of(1, 0x62, 0),
  ]);
  const head = Buffer.of(0, 1, 0x81, 0x80, 0, 1, count >> 8, count & 0xff, 0, 0, 0, 0);
  const rdata =
    type === "owners alone" ? [0, 16, 0, 1, 0, 0, 0, 60, 0, 1, 0] : [0, 5, 0, 1, 0, 0, 0, 60, 0, 2, 0xc0, 12];
  const record = Buffer.of(0xc0, 12, ...rdata);
  return Buffer.concat([head, name, Buffer.of(0, 5, 0, 1), ...Array.from({ length: count }, () => record)]);
}

const NAME_OCTETS = 231;

for (const type of ["owners alone", "owners and RDATA"] as const)
  test(`the names of a reply may unpack to a limited number of octets: ${type}`, () => {
    const asked = makeTestQuery({ name: `${"a.".repeat(114)}b.`, type: "CNAME" });
    // The name of the question counts with the owners.
    const most = Math.floor(MAX_UNPACKED_OCTETS / NAME_OCTETS) - 1;
    assert.equal(replyFrom(pointing(most, type), asked, false, false).answer.length, most);
    const isTooLarge = (error: unknown): boolean => error instanceof WireError && error.code === "TOO_LARGE";
    assert.throws(() => replyFrom(pointing(most + 1, type), asked, false, false), isTooLarge);
    // A refused reply is not read to its end.
    let read = 0;
    const counted = new Proxy(pointing(4_600, type), {
      get(target, key) {
        if (typeof key === "string" && /^\d+$/.test(key)) read++;
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    assert.throws(() => replyFrom(counted, asked, false, false), isTooLarge);
    assert.ok(read < 3 * MAX_UNPACKED_OCTETS, `${read} octets were read`);
  });
