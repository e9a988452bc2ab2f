/** The object of an answered query serves the next one: no state of the previous query may reach it. */
import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { untilTrue } from "../../../test/support/until-true.ts";
import type { Query } from "../../plugin/index.ts";
import { HONEST, type Script, SILENT } from "../../upstream/fixtures/scripted-server.ts";
import { until } from "../../upstream/fixtures/test-request.ts";
import {
  deadAddress,
  ForwardBench,
  forwarderOf,
  metricLines,
  withShortAddress,
} from "./fixtures/forward-bench.ts";

const bench = new ForwardBench();
afterEach(() => bench.stop());

const NUMBERED: Script = (asked) =>
  asked.answer({ answer: [`${asked.name} 1 IN A 192.0.2.${asked.name.replaceAll(/\D/g, "")}`] });

describe("a query in the place of another", () => {
  it("is not affected when the previous query is abandoned after its answer", async () => {
    const server = await bench.server(HONEST);
    const test = await bench.start(`forward . ${server.text}`);
    const chain = test.chain((asked) => asked.fail());
    const queries: Query[] = [];
    for (let count = 0; count < 3; count++) {
      const query = test.query({ name: "example.org." });
      assert.equal((await chain(query)).kind, "reply");
      queries.push(query);
    }
    server.script = SILENT;
    const query = test.query({ name: "example.org." });
    const outcome = chain(query);
    await server.receives(4);
    for (const answered of queries) answered.abandon();
    assert.notEqual(query.waiter, undefined);
    HONEST(server.asked[3] ?? assert.fail());
    assert.equal((await outcome).kind, "reply");
  });

  it("notes which upstreams are down, as the first query would", async () => {
    const server = await bench.server(HONEST);
    const test = await bench.start(`forward . ${server.text} ${await deadAddress()} {
      policy sequential
      max_fails 1
    }`);
    const down = forwarderOf(test).upstreams[1] ?? assert.fail();
    const chain = test.chain((asked) => asked.fail());
    await chain(test.query({ name: "example.org." }));
    down.health.check();
    await until(() => {
      test.clock.advance(500);
      return down.health.isDown(1);
    }, "the dead upstream is down");
    const query = test.query({ name: "example.org." });
    const notes: string[] = [];
    query.trace = { note: (text) => notes.push(text), enter: () => undefined, leave: () => undefined };
    await chain(query);
    assert.match(notes[0] ?? "", /^1 of 2 upstreams down: /);
  });

  it("ignores a second answer to the previous query", async () => {
    const server = await bench.server(HONEST);
    const test = await bench.start(`forward . ${server.text}`);
    await test.ask({ name: "example.org." });
    server.script = SILENT;
    const outcome = test.ask({ name: "example.org." });
    await server.receives(2);
    HONEST(server.asked[0] ?? assert.fail());
    const discarded = 'portolan_proxy_discarded_messages_total{proxy_name="forward",to="';
    await untilTrue(async () => {
      const lines = await metricLines(test, discarded);
      return lines.some((line) => line.endsWith('reason="id"} 1'));
    });
    HONEST(server.asked[1] ?? assert.fail());
    assert.equal((await outcome).reply.rcode, 0);
  });

  it("has an answer of its own, whatever happens to the queries beside it", async () => {
    const server = await bench.server((asked) => {
      const number = Number(asked.name.replaceAll(/\D/g, ""));
      if (number % 5 === 0) asked.send(withShortAddress(asked));
      else if (number % 7 !== 0) NUMBERED(asked);
    });
    const test = await bench.start(`forward . ${server.text}`);
    const chain = test.chain((asked) => asked.fail());
    for (let round = 0; round < 20; round++) {
      const seen = server.asked.length;
      const queries = Array.from({ length: 10 }, (_, index) =>
        test.query({ name: `n${10 * round + index}.example.` }),
      );
      const outcomes = queries.map((query) => Promise.resolve(chain(query)));
      await server.receives(seen + 10);
      await until(
        () => queries.every((query, index) => isLeft(round, index) || query.waiter === undefined),
        "all are answered",
      );
      for (const [index, query] of queries.entries()) if (isLeft(round, index)) query.abandon();
      for (const [index, outcome] of (await Promise.all(outcomes)).entries()) {
        const number = 10 * round + index;
        if (number % 5 === 0) assert.equal(outcome.kind, "failed");
        else if (number % 7 === 0) assert.equal(outcome.kind, "dropped");
        else if (outcome.kind !== "reply") assert.fail(outcome.kind);
        else assert.deepEqual(outcome.answer[0]?.data, { address: `192.0.2.${number}` });
      }
    }
  });
});

/** Whether a query stays without an answer. */
function isLeft(round: number, index: number): boolean {
  const number = 10 * round + index;
  return number % 7 === 0 && number % 5 !== 0;
}
