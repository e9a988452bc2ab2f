/** Abandoned clients do not cost the queries that joined theirs an answer. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { untilTrue } from "../../../test/support/until-true.ts";
import { DROPPED, type Next, type Outcome, type Query } from "../../plugin/index.ts";
import { Answer, PluginTest, records } from "../../plugin/testing.ts";
import cache from "./index.ts";

const A = "www.example.org. 300 IN A 192.0.2.1";

interface Asked {
  readonly query: Query;
  readonly resolve: (outcome: Outcome) => void;
}

/** A cache before an upstream that stops when a query is abandoned, and otherwise answers when the test says so. */
function scene() {
  const asked: Asked[] = [];
  const next: Next = (query) =>
    new Promise((resolve) => {
      asked.push({ query, resolve });
      query.root.waiter = { abandon: () => resolve(DROPPED) };
    });
  const running = PluginTest.of(cache, "cache");
  const chain = running.chain(next);
  const ask = (): { query: Query; outcome: Promise<Outcome> } => {
    const query = running.query({ name: "www.example.org." });
    return { query, outcome: Promise.resolve(chain(query)) };
  };
  return { asked, ask };
}

test("a query that joined an abandoned one is sent again for all that wait", async () => {
  const { asked, ask } = scene();
  const [leader, second, third, fourth] = [ask(), ask(), ask(), ask()];
  assert.equal(asked.length, 1);
  leader.query.abandon();
  assert.equal(await leader.outcome, DROPPED);
  await untilTrue(() => asked.length >= 2, { between: () => Promise.resolve() });
  second.query.abandon();
  assert.equal(await second.outcome, DROPPED);
  await untilTrue(() => asked.length >= 3, { between: () => Promise.resolve() });
  const last = asked[2] ?? assert.fail();
  last.resolve(last.query.reply({ answer: records(A) }));
  for (const { outcome } of [third, fourth]) {
    const settled = await outcome;
    assert.ok(settled.kind === "reply");
    assert.deepEqual(new Answer(settled).answer, [A]);
  }
  assert.equal(asked.length, 3);
});

test("an abandoned query that joined another is not sent upstream", async () => {
  const { asked, ask } = scene();
  const [leader, second] = [ask(), ask()];
  second.query.abandon();
  leader.query.abandon();
  assert.deepEqual(await Promise.all([leader.outcome, second.outcome]), [DROPPED, DROPPED]);
  assert.equal(asked.length, 1);
});
