import assert from "node:assert/strict";
import { test } from "node:test";
import { Rcode } from "../../dns/index.ts";
import { Answer, makeTestQuery, records } from "../testing.ts";
import { AnswerMemo, MEMO_OCTETS } from "./answer-memo.ts";

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

test("like a Map as long as it has room, and never wrong beyond it, with answers of all sizes", () => {
  const memo = new AnswerMemo();
  const model = new Map<string, string[]>();
  const changes = new Map<string, number>();
  let state = 7;
  const random = (below: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  let hits = 0;
  for (let step = 0; step < 6_000; step++) {
    const name = `n${random(300)}.example.`;
    const query = makeTestQuery({ name });
    const act = random(20);
    if (act === 0 && random(20) === 0) {
      memo.clear();
      model.clear();
    } else if (act === 1) {
      const scope = random(8);
      memo.forget(scope);
      for (const [known, ofScope] of changes) if (ofScope === scope) model.delete(known);
    } else if (act < 8) {
      // What is known is not made again.
      if (memo.find(query) !== undefined) continue;
      const count = random(10) === 0 ? random(400) : random(5);
      const answer = Array.from(
        { length: count },
        (_, at) => `${name} 5 IN A 10.${step >> 8}.${step & 255}.${at & 255}`,
      );
      const scope = random(8);
      memo.remember(
        query,
        query.reply({ authoritative: true, answer: answer.flatMap((text) => records(text)) }),
        scope,
      );
      model.set(name, answer);
      changes.set(name, scope);
    } else {
      const found = memo.find(query);
      if (found === undefined) continue;
      hits++;
      assert.deepEqual(new Answer(found).answer, model.get(name));
      assert.equal(found.encoded.runCount, (model.get(name)?.length ?? 0) > 1 ? 1 : 0);
      found.release();
    }
  }
  assert.ok(hits > 300, `${hits} hits`);
  assert.ok(memo.octets <= MEMO_OCTETS);
});

test("an answer with the zone's serial holds for that serial alone", () => {
  const memo = new AnswerMemo();
  const query = makeTestQuery({ name: "a.example." });
  memo.remember(query, query.reply(), 0, 4_000_000_000);
  assert.ok(memo.find(query, 4_000_000_000) !== undefined);
  assert.equal(memo.find(query, 4_000_000_001), undefined);
  assert.equal(memo.find(makeTestQuery({ name: "a.example.", class: 3 }), 4_000_000_000), undefined);
});

test("a released memo is empty, and starts again at the next query", () => {
  const memo = new AnswerMemo();
  const query = makeTestQuery({ name: "a." });
  memo.remember(query, query.reply());
  const released: number[] = [];
  memo.release((octets) => released.push(octets.length));
  memo.release((octets) => released.push(octets.length));
  assert.deepEqual(released, [MEMO_OCTETS]);
  assert.equal(memo.octets, 0);
  assert.equal(memo.find(query), undefined);
  memo.remember(query, query.reply());
  assert.notEqual(memo.find(query), undefined);
  memo.release(undefined);
  assert.equal(memo.find(query), undefined);
});
