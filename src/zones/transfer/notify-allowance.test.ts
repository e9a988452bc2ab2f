import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../lib/time/clock.ts";
import { NotifyAllowance } from "./notify-allowance.ts";

test("ten at once, then one in 250 ms, and the burst returns after a pause", () => {
  const clock = new FakeClock();
  const allowance = new NotifyAllowance(clock);
  const takeAll = (): number => {
    let taken = 0;
    while (allowance.take() === 0) taken++;
    return taken;
  };
  assert.equal(takeAll(), 10);
  assert.equal(allowance.take(), 250);
  clock.advance(100);
  assert.equal(allowance.take(), 150);
  clock.advance(150);
  assert.equal(takeAll(), 1);
  clock.advance(1_000);
  assert.equal(takeAll(), 4);
  clock.advance(3_600_000);
  assert.equal(takeAll(), 10);
});
