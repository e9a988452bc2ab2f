import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "./clock.ts";
import { OptimizerPause } from "./optimizer-pause.ts";

function prepare(): { clock: FakeClock; pause: OptimizerPause; flags: string[] } {
  const clock = new FakeClock();
  const flags: string[] = [];
  return { clock, flags, pause: new OptimizerPause(clock, (flag) => flags.push(flag)) };
}

test("the optimizer rests until the last of several has ended", () => {
  const { clock, flags, pause } = prepare();
  const endOne = pause.begin();
  const endOther = pause.begin();
  assert.deepEqual(flags, ["--no-turbofan"]);
  endOne();
  endOne();
  assert.deepEqual(flags, ["--no-turbofan"]);
  endOther();
  assert.deepEqual(flags, ["--no-turbofan", "--turbofan"]);
  assert.equal(clock.pendingTimers, 0);
});

test("a pause that nobody ends is over after ten seconds, and the next one begins anew", () => {
  const { clock, flags, pause } = prepare();
  const end = pause.begin();
  clock.advance(10_000);
  assert.deepEqual(flags, ["--no-turbofan", "--turbofan"]);
  end();
  pause.begin()();
  assert.deepEqual(flags, ["--no-turbofan", "--turbofan", "--no-turbofan", "--turbofan"]);
});
