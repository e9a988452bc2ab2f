import assert from "node:assert/strict";
import { it } from "node:test";
import { FakeClock } from "../../../lib/time/clock.ts";
import { Backoff } from "../watch/backoff.ts";
import { RequestLimiter } from "./request-limiter.ts";

const NEVER = new AbortController().signal;

it("lets a burst through at once, and the rest at its rate", async () => {
  const clock = new FakeClock();
  const limiter = new RequestLimiter({ qps: 10, burst: 2, maxInflight: 0 }, clock);
  const waited: number[] = [];
  for (let n = 0; n < 4; n++) void limiter.acquire(NEVER).then((ms) => waited.push(ms));
  await clock.settle();
  assert.deepEqual(waited, [0, 0]);
  await clock.settle(100);
  assert.deepEqual(waited, [0, 0, 100]);
  await clock.settle(100);
  assert.deepEqual(waited, [0, 0, 100, 200]);
  assert.equal(clock.pendingTimers, 0);
});

it("lets what goes on with something through at once, in front of others", async () => {
  const clock = new FakeClock();
  const limiter = new RequestLimiter({ qps: 10, burst: 1, maxInflight: 0 }, clock);
  const admitted: string[] = [];
  await limiter.acquire(NEVER);
  void limiter.acquire(NEVER).then(() => admitted.push("next list"));
  for (const page of ["page 2", "page 3"]) void limiter.acquire(NEVER, true).then(() => admitted.push(page));
  await clock.settle();
  assert.deepEqual(admitted, ["page 2", "page 3"]);
  await clock.settle(100);
  assert.deepEqual(admitted, ["page 2", "page 3", "next list"]);
});

it("holds requests back while too many wait for an answer, and forgets who gives up", async () => {
  const clock = new FakeClock();
  const limiter = new RequestLimiter({ qps: 0, burst: 0, maxInflight: 1 }, clock);
  await limiter.acquire(NEVER);
  const impatient = new AbortController();
  const given = limiter.acquire(impatient.signal);
  const patient = limiter.acquire(NEVER);
  impatient.abort(new Error("enough"));
  await assert.rejects(given, /enough/);
  limiter.release();
  assert.equal(await patient, 0);
});

it("waits longer after each failure, up to a bound, and as long as a server asks for", () => {
  const least = new Backoff(() => 0);
  const delays = Array.from({ length: 11 }, () => least.failed());
  assert.deepEqual(delays, [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 15_000, 15_000, 15_000]);
  const most = new Backoff(() => 0.999_999);
  assert.equal(Math.round(most.failed()), 200);
  assert.equal(Math.round(most.failed(5000)), 5200);
  assert.ok(most.failed(3_600_000) < 61_000);
  least.ease();
  assert.equal(least.failed(), 400);
  most.recovered();
  assert.equal(most.failures, 0);
});
