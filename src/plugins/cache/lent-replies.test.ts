/** A hit borrows its bytes from a pool: they must never appear in the answer to another question. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { EncodedSections } from "../../dns/index.ts";
import type { Reply } from "../../plugin/index.ts";
import { FramePool } from "../../plugin/packed/frames.ts";
import { answering, makeTestQuery, PluginTest, records } from "../../plugin/testing.ts";
import cache from "./index.ts";

const ONE = "one.example.org. 300 IN A 192.0.2.1";
const TWO = "two.example.org. 300 IN A 192.0.2.2";

/** A cache with both kinds of entries, and a function that makes hits. */
async function hits(): Promise<(name: string) => Reply> {
  const running = PluginTest.of(cache, "cache");
  await running.ask({ name: "one.example.org.", next: answering({ answer: records(ONE) }) });
  await running.ask({
    name: "two.example.org.",
    next: answering({ answer: records(TWO), additional: records("ns.example.org. 300 IN A 192.0.2.53") }),
  });
  return (name) => {
    const outcome = running.outcome({ name, next: () => assert.fail("not kept") });
    assert.ok(!(outcome instanceof Promise) && outcome.kind === "reply");
    return outcome;
  };
}

function addressIn(sections: EncodedSections): number | undefined {
  return sections.bytes[sections.start + 15];
}

test("the buffer of a reply is reused once the reply is sent", async () => {
  const hit = await hits();
  const first = hit("one.example.org.");
  const { sections } = first;
  first.release();
  first.release();
  const second = hit("two.example.org.");
  assert.equal(second.sections, sections);
  assert.equal(addressIn(sections), 2);
  assert.notEqual(hit("one.example.org.").sections, sections, "it is lent to one at a time");
});

test("a reply that is not sent yet keeps its bytes during other queries", async () => {
  const hit = await hits();
  const first = hit("one.example.org.");
  for (let count = 0; count < 20; count++) hit("two.example.org.").release();
  assert.equal(addressIn(first.sections), 1);
  assert.equal(first.answer.length, 1);
});

for (const [what, keep] of [
  ["octets", (reply: Reply) => reply.encoded],
  [
    "a copy of the reply",
    (reply: Reply) => reply.forQuery(makeTestQuery({ name: "one.example.org." })).sections,
  ],
] as const) {
  test(`a caller that holds ${what} keeps them, whether or not the reply is sent`, async () => {
    const hit = await hits();
    const reply = hit("one.example.org.");
    const held = keep(reply);
    reply.release();
    for (let count = 0; count < 20; count++) hit("two.example.org.").release();
    assert.equal(addressIn(held), 1);
  });
}

test("decoded records do not change", async () => {
  const hit = await hits();
  const reply = hit("one.example.org.");
  const [record] = reply.answer;
  reply.release();
  hit("two.example.org.").release();
  assert.deepEqual(record?.data, { address: "192.0.2.1" });
});

test("leaving sections out of one hit does not affect the next", async () => {
  const hit = await hits();
  const bare = hit("two.example.org.");
  bare.keepAnswerOnly();
  assert.deepEqual([bare.sections.count, bare.sections.end], [1, bare.sections.recordStarts[1]]);
  bare.release();
  const whole = hit("two.example.org.");
  assert.deepEqual([whole.answer.length, whole.additional.length], [1, 1]);
});

test("the buffer of an upstream's answer returns to the pool once it is sent, even if the answer is cached", () => {
  const query = makeTestQuery({ name: "one.example.org." });
  const { encoded } = query.reply({ answer: records(ONE) });
  let back = 0;
  encoded.lender = { takeBack: () => back++ };
  const running = PluginTest.of(cache, "cache");
  const outcome = running.outcome({ name: "one.example.org.", next: (asked) => asked.reply({ encoded }) });
  assert.ok(!(outcome instanceof Promise) && outcome.kind === "reply");
  assert.equal(back, 0);
  outcome.release();
  assert.equal(back, 1);
  const kept = running.outcome({ name: "one.example.org.", next: () => assert.fail("not kept") });
  assert.ok(!(kept instanceof Promise) && kept.kind === "reply");
  assert.notEqual(kept.sections.bytes, encoded.bytes);
});

test("a pool keeps few frames, and makes larger ones if they are too small", () => {
  const pool = new FramePool();
  const frames = Array.from({ length: 20 }, () => pool.take(100, 1));
  assert.equal(new Set(frames).size, 20);
  for (const frame of frames) frame.takeBack();
  const again = Array.from({ length: 20 }, () => pool.take(100, 1));
  assert.equal(again.filter((frame) => frames.includes(frame)).length, 8);
  const large = pool.take(60_000, 3000);
  assert.ok(large.sections.bytes.length >= 60_000 && large.sections.recordStarts.length > 3000);
  large.takeBack();
  assert.equal(pool.take(100, 1), large);
});
