import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DROPPED, Failure, type Outcome } from "../query/outcome.ts";
import type { ChainLink } from "../query/query.ts";
import { makeTestQuery } from "../testing.ts";
import { LateOutcome, StepRow } from "./late-outcome.ts";

const query = makeTestQuery({ name: "a.example." });
const link: ChainLink = {
  steps: StepRow.empty(),
  follow: (after, outcome) => after(outcome, query),
};

/** Failures whose rcode tells which steps they went through, in order. */
const steps = [1, 2, 3].map((digit) => (outcome: Outcome): Outcome => {
  assert.ok(outcome.kind === "failed");
  return new Failure(outcome.rcode * 10 + digit);
});

function rcodeOf(outcome: Outcome): number {
  assert.ok(outcome.kind === "failed");
  return outcome.rcode;
}

test("it can be awaited like a promise, before and after it is settled", async () => {
  const late = new LateOutcome(query);
  assert.ok(late instanceof Promise);
  const before = Promise.all([late, late.then((outcome) => outcome.kind), (async () => await late)()]);
  late.settle(DROPPED);
  assert.deepEqual(await before, [DROPPED, "dropped", DROPPED]);
  assert.equal(await late, DROPPED);
  assert.equal(await late.finally(() => undefined), DROPPED);
});

test("what throws in a `then` rejects what `then` gave, and nothing else", async () => {
  const late = new LateOutcome(query);
  const broken = late.then(() => assert.fail("broken"));
  late.settle(DROPPED);
  await assert.rejects(broken, /broken/);
  assert.equal(await late, DROPPED);
});

test("it is told once", () => {
  const told: Outcome[] = [];
  const late = new LateOutcome(query);
  late.follow({ settle: (outcome) => told.push(outcome) });
  const first = new Failure(1);
  late.settle(first);
  late.settle(DROPPED);
  assert.deepEqual(told, [first]);
});

test("a promise that rejects becomes what its owner says", async () => {
  const late = LateOutcome.of(query, Promise.reject(new Error("gone")), { panicked: () => new Failure(5) });
  assert.equal(rcodeOf(await late), 5);
});

test("queries that go the same way share a row of steps", () => {
  const [first = assert.fail(), second = assert.fail()] = steps;
  const row = StepRow.empty();
  assert.equal(row.with(link, first).with(link, second), row.with(link, first).with(link, second));
  assert.notEqual(row.with(link, first), row.with(link, second));
});

test("functions that are made for each query leave no rows behind", () => {
  const row = StepRow.empty();
  const known = Array.from({ length: 100 }, () => (outcome: Outcome) => outcome);
  const rows = known.map((after) => row.with(link, after));
  const kept = known.filter((after, index) => row.with(link, after) === rows[index]);
  assert.equal(kept.length, 8);
});

test("in any order of adding, following and settling, followers see what was added before them", () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.record({ step: fc.nat(2) }), fc.constant("follow"), fc.constant("settle"))),
      (actions) => {
        const told: number[] = [];
        const expected: number[] = [];
        let late = new LateOutcome(query);
        const source = late;
        let soFar = 7;
        for (const action of [...actions, "settle"]) {
          if (action === "settle") source.settle(new Failure(7));
          else if (action === "follow") {
            late.follow({ settle: (outcome) => told.push(rcodeOf(outcome)) });
            expected.push(soFar);
          } else if (typeof action === "object") {
            late = LateOutcome.of(query, late, { panicked: () => DROPPED });
            late.add(link, steps[action.step] ?? assert.fail());
            soFar = soFar * 10 + action.step + 1;
          }
        }
        assert.deepEqual(told, expected);
      },
    ),
  );
});
