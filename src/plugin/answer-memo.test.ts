import assert from "node:assert/strict";
import { test } from "node:test";
import { Rcode } from "../dns/index.ts";
import { AnswerMemo } from "./answer-memo.ts";
import { Answer, makeTestQuery, records } from "./testing.ts";

test("gives back the same answer to the same question in any spelling, and to no other", () => {
  const memo = new AnswerMemo();
  const query = makeTestQuery({ name: "web.example." });
  assert.equal(memo.find(query), undefined);
  memo.remember(
    query,
    query.reply({ authoritative: true, answer: records("web.example. 5 IN A 192.0.2.1") }),
  );
  const again = makeTestQuery({ name: "WEB.example.", id: 9 });
  const found = memo.find(again);
  assert.ok(found !== undefined);
  assert.equal(found.query, again);
  assert.equal(found.authoritative, true);
  assert.deepEqual(new Answer(found).answer, ["WEB.example. 5 IN A 192.0.2.1"]);
  assert.equal(memo.find(makeTestQuery({ name: "web.example.", type: "AAAA" })), undefined);
  assert.equal(memo.find(makeTestQuery({ name: "wen.example." })), undefined);
});

test("a shell changed on the way back does not change what is remembered", () => {
  const memo = new AnswerMemo();
  const query = makeTestQuery({ name: "no.example." });
  memo.remember(query, query.reply({ rcode: Rcode.NXDOMAIN, authoritative: true }));
  const first = memo.find(query);
  assert.ok(first !== undefined);
  first.rcode = Rcode.SERVFAIL;
  first.flags = 0;
  first.setUniformTtl(1);
  const second = memo.find(query);
  assert.equal(second?.rcode, Rcode.NXDOMAIN);
  assert.equal(second?.authoritative, true);
  assert.equal(second?.uniformTtl, -1);
});

test("forgets everything at once", () => {
  const memo = new AnswerMemo();
  const query = makeTestQuery({ name: "a." });
  memo.remember(query, query.reply());
  memo.clear();
  assert.equal(memo.find(query), undefined);
});

test("any number of questions never gives a wrong answer, and most of the latest are found", () => {
  const memo = new AnswerMemo();
  let found = 0;
  for (let n = 0; n < 40_000; n++) {
    const query = makeTestQuery({ name: `host-${n}.example.` });
    memo.remember(query, query.reply({ rcode: n % 16 }));
  }
  for (let n = 0; n < 40_000; n++) {
    const reply = memo.find(makeTestQuery({ name: `host-${n}.example.` }));
    if (reply === undefined) continue;
    assert.equal(reply.rcode, n % 16);
    found++;
  }
  assert.ok(found > 8_000 && found <= 16_384, `${found} found`);
});
