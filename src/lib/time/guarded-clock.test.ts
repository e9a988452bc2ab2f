import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "./clock.ts";
import { GuardedClock } from "./guarded-clock.ts";

test("a callback that throws is told of, and runs again when its time comes", () => {
  const clock = new FakeClock();
  const faults: unknown[] = [];
  const guarded = new GuardedClock(clock, (error) => faults.push(error));
  let runs = 0;
  const timer = guarded.every(10, () => {
    runs++;
    throw new Error(`run ${runs}`);
  });
  guarded.after(15, () => JSON.parse("{"));
  clock.advance(25);
  timer.cancel();
  clock.advance(100);
  assert.deepEqual(
    faults.map((fault) => (fault instanceof Error ? fault.name : fault)),
    ["Error", "SyntaxError", "Error"],
  );
  assert.equal(runs, 2);
});

test("so is a promise that is rejected later", async () => {
  const clock = new FakeClock();
  const faults: unknown[] = [];
  const guarded = new GuardedClock(clock, (error) => faults.push(error));
  // A callback of one expression: what it returns is a promise, whatever the type says.
  guarded.after(1, (): unknown => Promise.resolve().then(() => assert.equal(1, 2, "later")));
  await clock.settle(1);
  assert.ok(faults[0] instanceof assert.AssertionError && faults.length === 1);
});

test("time is that of the clock below", () => {
  const clock = new FakeClock({ now: 7, wallTime: 1_000 });
  const guarded = new GuardedClock(clock, (error) => assert.fail(String(error)));
  clock.advance(3);
  assert.deepEqual([guarded.now(), guarded.turnTime(), guarded.wallTime()], [10, 10, 1_003]);
});
