/** Upstreams that accept queries over TCP and never answer: no client may wait for more than one time-out for each. */
import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { HONEST, type Script, type ScriptedServer, SILENT } from "../../upstream/fixtures/scripted-server.ts";
import { until } from "../../upstream/fixtures/test-request.ts";
import { ForwardBench, forwarderOf } from "./fixtures/forward-bench.ts";

const bench = new ForwardBench();
afterEach(() => bench.stop());

const QUERIES = 200;

/** Reads nothing from its connections. */
const deaf: Script = (asked) => {
  asked.socket?.pause();
};

/** Names of the queries that reached a server, without probes. */
const namesAt = (server: ScriptedServer): string[] =>
  server.asked.map(({ name }) => name).filter((name) => name !== ".");

for (const [what, script] of [
  ["never answers", SILENT],
  ["stops reading", deaf],
] as const) {
  for (const [option, transport] of [
    ["", "tcp"],
    ["force_tcp", "udp"],
  ] as const) {
    describe(`an upstream that ${what} over TCP, asked by ${transport} clients ${option}`, () => {
      for (const policy of ["random", "sequential"]) {
        it(`costs each of ${QUERIES} queries at most one time-out, with policy ${policy}`, async () => {
          const silent = await bench.server((asked) =>
            asked.protocol === "udp" ? HONEST(asked) : script(asked),
          );
          const well = await bench.server(HONEST);
          const test = await bench.start(`forward . ${silent.text} ${well.text} {
            policy ${policy}
            max_fails 0
            ${option}
          }`);
          const slowest: number[] = [];
          // They arrive over 3 s, so that connections carry queries of every age.
          const answers: Promise<unknown>[] = [];
          for (let n = 0; n < QUERIES; n++) {
            const asked = test.clock.now();
            answers.push(
              test.ask({ name: `n${n}.example.`, transport }).then(({ answer }) => {
                assert.deepEqual(answer, [`n${n}.example. 60 IN A 192.0.2.1`]);
                slowest.push(test.clock.now() - asked);
              }),
            );
            if (n % 10 === 9) {
              await new Promise((resolve) => setImmediate(resolve));
              test.clock.advance(150);
            }
          }
          let done = false;
          const all = Promise.all(answers).finally(() => {
            done = true;
          });
          all.catch(() => undefined);
          await until(() => {
            if (!done && namesAt(silent).length + namesAt(well).length > 0) test.clock.advance(1);
            return done;
          }, "all are answered");
          await all;
          assert.ok(Math.max(...slowest) < 4_200, `the slowest after ${Math.max(...slowest)} ms`);
          const asked = namesAt(silent);
          assert.equal(new Set(asked).size, asked.length, "nothing went twice to the silent one");
        });
      }
    });
  }
}

it("is skipped by queries over TCP once its probes over TCP fail, and asked over UDP as before", async () => {
  const silent = await bench.server((asked) => (asked.protocol === "udp" ? HONEST(asked) : undefined));
  const well = await bench.server(HONEST);
  const test = await bench.start(`forward . ${silent.text} ${well.text} {
    policy sequential
    max_fails 1
  }`);
  const [upstream] = forwarderOf(test).upstreams;
  assert.ok(upstream !== undefined);
  const first = test.ask({ name: "first.example.", transport: "tcp" });
  await silent.receives(1);
  test.clock.advance(2_101);
  await first;
  await until(() => {
    test.clock.advance(200);
    return upstream.streamHealth.isDown(1);
  }, "it is down for TCP");
  assert.equal(upstream.health.isDown(1), false);
  await test.ask({ name: "second.example.", transport: "tcp" });
  assert.ok(!namesAt(silent).includes("second.example."));
  await test.ask({ name: "third.example." });
  assert.ok(namesAt(silent).includes("third.example."));
});
