import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../plugin/testing.ts";
import { addressOf, loaded, notify, ScriptedPrimary, serve, soa } from "./fixtures/primary.ts";

test("thousands of NOTIFY cause few queries and log lines, and the last one counts", async () => {
  await using primary = await ScriptedPrimary.start();
  primary.serve(soa(1), "www.example.org. 60 IN A 192.0.2.1");
  const running = serve(primary);
  await running.start();
  await loaded(running);
  primary.messages = () => [[soa(1)]];
  for (let round = 0; round < 40; round++) {
    for (let count = 0; count < 50; count++) await notify(running);
    await until(() => primary.asked.length > Math.min(round, 10));
  }
  assert.equal(primary.asked.length, 11);
  assert.equal(running.log.lines.filter((line) => line.includes("Notify from")).length, 10);
  primary.serve(soa(2), "www.example.org. 60 IN A 192.0.2.2");
  await running.clock.settle(250);
  await loaded(running, 2);
  assert.deepEqual(await addressOf(running), ["192.0.2.2"]);
  await running.stop();
});

test("the sender of a NOTIFY is queried, even if an earlier primary has nothing new", async () => {
  await using first = await ScriptedPrimary.start();
  await using second = await ScriptedPrimary.start();
  for (const primary of [first, second]) primary.serve(soa(1), "www.example.org. 60 IN A 192.0.2.1");
  const running = serve(first, ` transfer from 127.0.0.1:${second.port}`);
  await running.start();
  await loaded(running);
  first.messages = () => [[soa(1)]];
  second.serve(soa(2), "www.example.org. 60 IN A 192.0.2.2");
  await notify(running);
  await loaded(running, 2);
  assert.deepEqual(await addressOf(running), ["192.0.2.2"]);
  await running.stop();
});

test("a primary with an older serial is logged once, and counted", async () => {
  await using primary = await ScriptedPrimary.start();
  primary.serve(soa(5), "www.example.org. 60 IN A 192.0.2.5");
  const running = serve(primary);
  await running.start();
  await loaded(running);
  primary.messages = () => [[soa(3)]];
  for (let asked = 2; asked < 5; asked++) {
    await notify(running);
    await until(() => primary.asked.length === asked);
    await running.clock.settle(0);
  }
  await until(() => running.log.lines.some((line) => line.includes("has serial 3")));
  const warnings = running.log.lines.filter((line) => line.includes("has serial 3"));
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? "", /which is older than 5: the zone stays as it is/);
  const { body } = await running.metrics.expose();
  assert.match(body, /portolan_transfer_in_total\{zone="example\.org\.",result="older"\} [23]/);
  await running.stop();
});
