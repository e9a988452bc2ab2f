import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { FakeClock } from "./clock.ts";
import { TimeoutHandle, TimeoutWheel } from "./timeout-wheel.ts";

describe("TimeoutWheel", () => {
  it("expires once, not early, and within two granules", () => {
    const clock = new FakeClock({ now: 1234.5 });
    const wheel = new TimeoutWheel(clock, 10);
    const expiredAt: number[] = [];
    wheel.schedule(25, { expired: () => expiredAt.push(clock.now() - 1234.5) });
    clock.advance(1000);
    assert.deepEqual(expiredAt, [30]);
    assert.equal(wheel.size, 0);
  });

  it("does not expire what was cancelled, and cancelling twice is harmless", () => {
    const clock = new FakeClock();
    const wheel = new TimeoutWheel(clock, 10);
    const handle = wheel.schedule(5, { expired: () => assert.fail() });
    wheel.cancel(handle);
    wheel.cancel(handle);
    assert.equal(wheel.size, 0);
    clock.advance(100);
    let calls = 0;
    const expired = wheel.schedule(5, { expired: () => calls++ });
    clock.advance(100);
    wheel.cancel(expired);
    assert.deepEqual([calls, wheel.size], [1, 0]);
  });

  it("takes a target that is its own handle, again and again", () => {
    const clock = new FakeClock();
    const wheel = new TimeoutWheel(clock, 10);
    let calls = 0;
    class Waiting extends TimeoutHandle {
      expired(): void {
        calls++;
        if (calls === 1) wheel.scheduleItself(5, this);
      }
    }
    const waiting = new Waiting();
    wheel.scheduleItself(5, waiting);
    clock.advance(100);
    assert.deepEqual([calls, wheel.size], [2, 0]);
    wheel.scheduleItself(5, waiting);
    wheel.cancel(waiting);
    clock.advance(100);
    assert.deepEqual([calls, wheel.size], [2, 0]);
  });

  it("holds a timer only while something waits", () => {
    const clock = new FakeClock();
    const wheel = new TimeoutWheel(clock, 10);
    assert.equal(clock.pendingTimers, 0);
    wheel.schedule(5, { expired: () => undefined });
    wheel.schedule(5, { expired: () => undefined });
    assert.equal(clock.pendingTimers, 1);
    clock.advance(20);
    assert.equal(clock.pendingTimers, 0);
  });

  it("lets a target schedule again and cancel its neighbour", () => {
    const clock = new FakeClock();
    const wheel = new TimeoutWheel(clock, 10);
    const seen: number[] = [];
    const target = {
      expired() {
        seen.push(clock.now());
        wheel.cancel(neighbour);
        if (seen.length < 3) wheel.schedule(0, target);
      },
    };
    wheel.schedule(10, target);
    const neighbour = wheel.schedule(10, { expired: () => assert.fail() });
    clock.advance(100);
    assert.deepEqual(seen, [10, 20, 30]);
  });

  it("calls the others when one target throws", () => {
    const clock = new FakeClock();
    const wheel = new TimeoutWheel(clock, 10);
    let calls = 0;
    wheel.schedule(10, {
      expired: () => {
        throw new Error("broken target");
      },
    });
    wheel.schedule(10, { expired: () => calls++ });
    assert.throws(() => clock.advance(10), /broken target/);
    clock.advance(10);
    assert.equal(calls, 1);
  });

  it("catches up after the process stood still for longer than a turn of the wheel", () => {
    let now = 0;
    let tick: () => void = () => assert.fail("no timer");
    const stalled = new FakeClock();
    const wheel = new TimeoutWheel(
      {
        now: () => now,
        turnTime: () => now,
        wallTime: () => stalled.wallTime(),
        after: () => assert.fail("not used"),
        every: (_interval, callback) => {
          tick = callback;
          return { cancel: () => undefined };
        },
      },
      10,
    );
    const seen: number[] = [];
    for (const delay of [10, 1000, 2600, 9000, 50_000]) {
      wheel.schedule(delay, { expired: () => seen.push(delay) });
    }
    now = 10_000;
    tick();
    assert.deepEqual(
      seen.toSorted((a, b) => a - b),
      [10, 1000, 2600, 9000],
    );
    assert.equal(wheel.size, 1);
  });

  it("calls a part of very many that are due together, and the others in later turns", () => {
    const clock = new FakeClock();
    let called = 0;
    let elapsed = 0;
    const calledBefore: number[] = [];
    const wheel = new TimeoutWheel(
      {
        now: () => clock.now() + elapsed,
        turnTime: () => clock.turnTime(),
        wallTime: () => clock.wallTime(),
        every: (interval, callback) => clock.every(interval, callback),
        after: (delay, callback) => {
          calledBefore.push(called);
          return clock.after(delay, callback);
        },
      },
      10,
    );
    const quick = { expired: () => called++ };
    const slow = {
      expired: () => {
        called++;
        elapsed += 0.05;
      },
    };
    for (let n = 0; n < 40; n++) wheel.schedule(5, slow);
    for (let n = 0; n < 100; n++) wheel.schedule(5, quick);
    clock.advance(10);
    assert.deepEqual(calledBefore, [16, 32]);
    assert.deepEqual([called, wheel.size], [140, 0]);
    clock.advance(20);
    assert.equal(clock.pendingTimers, 0);
  });

  it("drops everything in clear, and works afterwards", () => {
    const clock = new FakeClock();
    const wheel = new TimeoutWheel(clock, 10);
    const handle = wheel.schedule(5, { expired: () => assert.fail() });
    wheel.clear();
    wheel.cancel(handle);
    assert.deepEqual([wheel.size, clock.pendingTimers], [0, 0]);
    let calls = 0;
    wheel.schedule(5, { expired: () => calls++ });
    clock.advance(20);
    assert.equal(calls, 1);
  });

  it("refuses an invalid granularity", () => {
    assert.throws(() => new TimeoutWheel(new FakeClock(), 0), RangeError);
    assert.throws(() => new TimeoutWheel(new FakeClock(), Number.NaN), RangeError);
  });

  it("keeps its promise for any mix of delays and cancellations", () => {
    const step = fc.record({
      delay: fc.oneof(fc.integer({ min: 0, max: 500 }), fc.integer({ min: 0, max: 20_000 })),
      wait: fc.integer({ min: 0, max: 700 }),
      cancel: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const clock = new FakeClock({ now: 3.25 });
        const wheel = new TimeoutWheel(clock, 10);
        const waiting = new Map<number, TimeoutHandle>();
        for (const [index, { delay, wait, cancel }] of steps.entries()) {
          const start = clock.now();
          const handle = wheel.schedule(delay, {
            expired() {
              const late = clock.now() - start - delay;
              assert.ok(late >= 0 && late <= 20, `${late} ms late`);
              assert.ok(waiting.delete(index), "expired once, and not after its cancellation");
            },
          });
          waiting.set(index, handle);
          clock.advance(wait);
          if (cancel) {
            wheel.cancel(handle);
            waiting.delete(index);
          }
          assert.equal(wheel.size, waiting.size);
        }
        clock.advance(20_020);
        assert.deepEqual([waiting.size, wheel.size, clock.pendingTimers], [0, 0, 0]);
      }),
    );
  });
});
