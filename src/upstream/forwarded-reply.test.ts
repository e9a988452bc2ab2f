/** Replies that came as datagrams lean on octets that are used again: nobody may see those of another. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { anyMessage } from "../dns/fixtures/arbitraries.ts";
import { encodeMessage, Rcode } from "../dns/index.ts";
import type { Reply } from "../plugin/index.ts";
import { FramePool } from "../plugin/packed/frames.ts";
import { makeTestQuery, records } from "../plugin/testing.ts";
import { lentReply, replyFrom } from "./forwarded-reply.ts";

/** The buffer that all datagrams come in. */
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

test("reads what a reply with octets of its own reads, or leaves it to that", () => {
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

test("octets are used again once the reply is sent, and not before", () => {
  const frames = new FramePool();
  const first = received(frames, ONE);
  const second = received(frames, TWO);
  assert.notEqual(first?.sections, second?.sections);
  const sections = second?.sections;
  second?.release();
  assert.equal(received(frames, TWO)?.sections, sections);
  assert.deepEqual(addressOf(first), { address: "192.0.2.1" });
});

test("who holds its octets has them for good", () => {
  const frames = new FramePool();
  const first = received(frames, ONE);
  const held = first?.encoded;
  first?.release();
  for (let count = 0; count < 20; count++) received(frames, TWO)?.release();
  assert.equal(held?.bytes[held.end - 1], 1);
});

test("what is left to others gives its frame back", () => {
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
