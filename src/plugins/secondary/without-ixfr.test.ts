/** Primaries that serve AXFR, and fail at IXFR in several ways. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../plugin/testing.ts";
import { addressOf, loaded, notify, ScriptedPrimary, serve, soa } from "./fixtures/primary.ts";

const AXFR = 252;
const IXFR = 251;

/** A zone whose only answer to IXFR is `ixfr`. */
function serveWithout(
  primary: ScriptedPrimary,
  serial: number,
  ixfr: ScriptedPrimary["messages"] = () => [],
): void {
  primary.serve(soa(serial), `www.example.org. 60 IN A 192.0.2.${serial}`);
  const { messages } = primary;
  primary.messages = (type, known) => (type === IXFR ? ixfr(type, known) : messages(type, known));
}

for (const [title, ixfr] of [
  ["closes the connection at IXFR", () => []],
  ["answers IXFR with the serial that it is told of", (_type, known) => [[soa(known ?? 0)]]],
] as const satisfies readonly (readonly [string, ScriptedPrimary["messages"]])[]) {
  test(`the zone of a primary that ${title} is read by AXFR when it changes`, async () => {
    await using primary = await ScriptedPrimary.start();
    serveWithout(primary, 1, ixfr);
    const running = serve(primary);
    await running.start();
    await loaded(running);
    serveWithout(primary, 2, ixfr);
    await running.clock.settle(102_500);
    await loaded(running, 2);
    assert.deepEqual(await addressOf(running), ["192.0.2.2"]);
    assert.deepEqual(primary.asked, ["AXFR", "SOA", "IXFR 1", "AXFR"]);
    assert.equal(running.log.lines.filter((line) => line.includes("(AXFR) from now on")).length, 1);
    // From then on IXFR is not tried: the serial is queried first, and a changed zone transferred by AXFR.
    await running.clock.settle(102_500);
    await until(() => primary.asked.length === 5);
    serveWithout(primary, 3, ixfr);
    await notify(running);
    await loaded(running, 3);
    assert.deepEqual(await addressOf(running), ["192.0.2.3"]);
    assert.deepEqual(primary.asked.slice(4), ["SOA", "SOA", "AXFR"]);
    await running.stop();
  });
}

test("a primary that fails at IXFR after it has worked is queried for its serial first, and then for AXFR", async () => {
  await using primary = await ScriptedPrimary.start();
  primary.serve(soa(1), "www.example.org. 60 IN A 192.0.2.1");
  const running = serve(primary);
  await running.start();
  await loaded(running);
  primary.serve(soa(2), "www.example.org. 60 IN A 192.0.2.2");
  await notify(running);
  await loaded(running, 2);
  serveWithout(primary, 3);
  await notify(running);
  await until(() => running.log.lines.some((line) => line.includes("Failed to transfer")));
  await running.clock.settle(51_000);
  await loaded(running, 3);
  assert.deepEqual(await addressOf(running), ["192.0.2.3"]);
  assert.deepEqual(primary.asked, ["AXFR", "SOA", "IXFR 1", "IXFR 2", "SOA", "IXFR 2", "AXFR"]);
  await running.stop();
});

test("a primary that does not answer SOA queries is asked for changes", async () => {
  await using primary = await ScriptedPrimary.start();
  primary.serve(soa(1), "www.example.org. 60 IN A 192.0.2.1");
  const running = serve(primary);
  await running.start();
  await loaded(running);
  primary.serve(soa(2), "www.example.org. 60 IN A 192.0.2.2");
  const { messages } = primary;
  primary.messages = (type, known) => (type === AXFR || type === IXFR ? messages(type, known) : [5]);
  await notify(running);
  await loaded(running, 2);
  assert.deepEqual(await addressOf(running), ["192.0.2.2"]);
  assert.deepEqual(primary.asked, ["AXFR", "SOA", "IXFR 1"]);
  await running.stop();
});

test("with axfr_only, a primary is never asked for changes", async () => {
  await using primary = await ScriptedPrimary.start();
  primary.serve(soa(1), "www.example.org. 60 IN A 192.0.2.1");
  const running = serve(primary, "axfr_only");
  await running.start();
  await loaded(running);
  primary.serve(soa(2), "www.example.org. 60 IN A 192.0.2.2");
  await notify(running);
  await loaded(running, 2);
  await notify(running);
  await until(() => primary.asked.length === 4);
  assert.deepEqual(primary.asked, ["AXFR", "SOA", "AXFR", "SOA"]);
  assert.deepEqual(await addressOf(running), ["192.0.2.2"]);
  await running.stop();
});
