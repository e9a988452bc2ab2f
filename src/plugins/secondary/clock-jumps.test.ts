import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { until } from "../../plugin/testing.ts";
import { addressOf, loaded, ScriptedPrimary, serve, soa } from "./fixtures/primary.ts";

const DAY = 86_400_000;
const JUMPS = [
  ["a day on", DAY],
  ["a year on", 365 * DAY],
  ["a day back", -DAY],
  ["a year back", -365 * DAY],
] as const;
const ANSWER = "www.example.org. 60 IN A 192.0.2.1";

for (const [what, jump] of JUMPS) {
  test(`the clock is set ${what}: a zone is refreshed, retried and expires on time`, async () => {
    await using primary = await ScriptedPrimary.start();
    primary.serve(soa(1, { refresh: 100, retry: 50, expire: 500 }), ANSWER);
    const running = serve(primary);
    const { clock } = running;
    await running.start();
    await loaded(running);
    clock.setWallTime(clock.wallTime() + jump);
    await clock.settle(99_000);
    assert.equal(primary.asked.length, 1);
    primary.messages = () => [];
    // Refresh, with half of its jitter.
    await clock.settle(3_500);
    await until(() => running.log.lines.some((line) => line.includes("Failed to transfer")));
    assert.deepEqual(await addressOf(running), ["192.0.2.1"]);
    assert.match((await running.metrics.expose()).body, /^portolan_zone_age_seconds\{.*\} 102\.5$/m);
    clock.setWallTime(clock.wallTime() + jump);
    const asked = primary.asked.length;
    await clock.settle(50_000);
    assert.equal(primary.asked.length, asked);
    await clock.settle(1_000);
    await until(() => primary.asked.length > asked);
    assert.deepEqual(await addressOf(running), ["192.0.2.1"]);
    clock.setWallTime(clock.wallTime() - jump);
    // 153.5 seconds have gone by.
    await clock.settle(346_000);
    assert.deepEqual(await addressOf(running), ["192.0.2.1"]);
    await clock.settle(1_000);
    assert.equal(await addressOf(running), 2);
    await running.stop();
  });

  test(`the clock is set ${what}: a reload takes over a valid zone with its remaining time`, async () => {
    const primary = await ScriptedPrimary.start();
    primary.serve(soa(1, { refresh: 400, expire: 500 }), ANSWER);
    const first = serve(primary);
    const { clock } = first;
    await first.start();
    await loaded(first);
    await primary[Symbol.asyncDispose]();
    await clock.settle(100_000);
    clock.setWallTime(clock.wallTime() + jump);
    const second = serve(primary, "", { clock });
    for (const instance of second.instances)
      await instance.inherit?.(first.instances.map((former) => ({ name: "secondary", instance: former })));
    await second.start();
    await first.stop();
    assert.deepEqual(await addressOf(second), ["192.0.2.1"]);
    await clock.settle(399_000);
    assert.deepEqual(await addressOf(second), ["192.0.2.1"]);
    await clock.settle(2_000);
    assert.equal(await addressOf(second), 2);
    await second.stop();
  });

  test(`the clock is set ${what}: a zone from the disk keeps its remaining time`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "portolan-secondary-"));
    try {
      const primary = await ScriptedPrimary.start();
      primary.serve(soa(1, { refresh: 400, expire: 500 }), ANSWER);
      const first = serve(primary, ` directory ${folder}`);
      await first.start();
      await loaded(first);
      await until(() => readdirSync(folder).includes("example.org.zone"));
      await first.stop();
      await primary[Symbol.asyncDispose]();
      const second = serve(primary, ` directory ${folder}`);
      const { clock } = second;
      await second.start();
      clock.setWallTime(clock.wallTime() + jump);
      await clock.settle(499_000);
      assert.deepEqual(await addressOf(second), ["192.0.2.1"]);
      await clock.settle(2_000);
      assert.equal(await addressOf(second), 2);
      await second.stop();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}
