import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../lib/time/clock.ts";
import { RateLimit } from "./rate-limit.ts";

test("allows a burst at once, then one request per interval, and never more than the burst", () => {
  const clock = new FakeClock({ now: 1000 });
  const limit = new RateLimit({ interval: 100, burst: 2 }, clock);
  const taken = (): boolean[] => [limit.take(), limit.take(), limit.take()];
  assert.deepEqual(taken(), [true, true, false]);
  clock.advance(99);
  assert.equal(limit.take(), false);
  clock.advance(1);
  assert.deepEqual(taken(), [true, false, false]);
  clock.advance(10_000);
  assert.deepEqual(taken(), [true, true, false]);
});
