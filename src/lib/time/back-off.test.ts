import assert from "node:assert/strict";
import { test } from "node:test";
import { BackOff } from "./back-off.ts";

test("waits twice as long each time, up to the bound, and begins anew after a success", () => {
  const backOff = new BackOff({ first: 100, longest: 500, jitter: 0, random: { fraction: () => 0.9 } });
  assert.deepEqual([backOff.next(), backOff.next(), backOff.next(), backOff.next()], [100, 200, 400, 500]);
  for (let failures = 0; failures < 5_000; failures++) assert.equal(backOff.next(), 500);
  backOff.reset();
  assert.equal(backOff.next(), 100);
});

test("leaves half of a wait to chance", () => {
  for (const [fraction, expected] of [
    [0, 100],
    [0.5, 75],
    [0.999, 50.05],
  ] as const) {
    const backOff = new BackOff({ first: 100, longest: 500, random: { fraction: () => fraction } });
    assert.equal(backOff.next(), expected);
  }
});
