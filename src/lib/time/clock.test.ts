import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, it } from "node:test";
import { Worker } from "node:worker_threads";
import { FakeClock, SystemClock } from "./clock.ts";

describe("FakeClock", () => {
  it("runs due timers in order of their time, then of their making", () => {
    const clock = new FakeClock();
    const seen: string[] = [];
    clock.after(20, () => seen.push(`late at ${clock.now()}`));
    clock.after(10, () => seen.push(`first at ${clock.now()}`));
    clock.after(10, () => seen.push(`second at ${clock.now()}`));
    clock.after(21, () => seen.push("not yet due"));
    clock.advance(20);
    assert.deepEqual(seen, ["first at 10", "second at 10", "late at 20"]);
    assert.equal(clock.pendingTimers, 1);
  });

  it("runs timers that timers set, when they fall due in the same step", () => {
    const clock = new FakeClock();
    const seen: number[] = [];
    const again = () => {
      seen.push(clock.now());
      if (seen.length < 3) clock.after(5, again);
    };
    clock.after(5, again);
    clock.advance(100);
    assert.deepEqual(seen, [5, 10, 15]);
    assert.equal(clock.now(), 100);
  });

  it("repeats an interval until it is cancelled, also from within", () => {
    const clock = new FakeClock({ now: 0.5 });
    const seen: number[] = [];
    const timer = clock.every(10, () => {
      seen.push(clock.now());
      if (seen.length === 3) timer.cancel();
    });
    clock.advance(100);
    assert.deepEqual(seen, [10.5, 20.5, 30.5]);
    assert.equal(clock.pendingTimers, 0);
  });

  it("does not call a timer that another timer cancelled at the same moment", () => {
    const clock = new FakeClock();
    clock.after(10, () => second.cancel());
    const second = clock.after(10, () => assert.fail("cancelled"));
    clock.advance(10);
    second.cancel();
  });

  it("moves the wall clock with the monotonic one, or alone", () => {
    const clock = new FakeClock({ now: 7, wallTime: 1000 });
    clock.advance(5);
    assert.deepEqual([clock.now(), clock.wallTime()], [12, 1005]);
    clock.setWallTime(50);
    clock.advance(1);
    assert.deepEqual([clock.now(), clock.wallTime()], [13, 51]);
  });

  it("lets chains of await make progress between timers in settle", async () => {
    const clock = new FakeClock();
    const sleep = (ms: number) => new Promise<void>((resolve) => clock.after(ms, resolve));
    const seen: number[] = [];
    const worker = (async () => {
      for (let round = 0; round < 3; round++) {
        await sleep(10);
        seen.push(clock.now());
      }
    })();
    await clock.settle(30);
    assert.deepEqual(seen, [10, 20, 30]);
    await worker;
  });

  it("refuses steps and delays that mean nothing", async () => {
    const clock = new FakeClock();
    assert.throws(() => clock.advance(-1), RangeError);
    assert.throws(() => clock.advance(Infinity), RangeError);
    await assert.rejects(clock.settle(Number.NaN), RangeError);
    assert.throws(() => clock.after(Number.NaN, () => assert.fail()), RangeError);
  });

  it("takes a negative delay for none, and never fires after Infinity", () => {
    const clock = new FakeClock();
    let calls = 0;
    clock.after(-5, () => calls++);
    clock.after(Infinity, () => assert.fail());
    clock.advance(0);
    assert.equal(calls, 1);
    clock.advance(1e12);
  });
});

describe("SystemClock", () => {
  const clock = new SystemClock({ keepAlive: true });

  it("reads the time of a turn once, and with each look at the clock itself", async () => {
    const first = clock.turnTime();
    while (performance.now() < first + 2);
    assert.equal(clock.turnTime(), first);
    const now = clock.now();
    assert.ok(now >= first + 2);
    assert.equal(clock.turnTime(), now);
    while (performance.now() < now + 2);
    await new Promise((resolve) => setImmediate(resolve));
    assert.ok(clock.turnTime() >= now + 2);
  });

  it("goes on, and tells the time of day", () => {
    const before = clock.now();
    assert.ok(clock.now() >= before);
    assert.ok(Math.abs(clock.wallTime() - Date.now()) < 1000);
  });

  it("calls back once", async () => {
    const start = clock.now();
    await new Promise<void>((resolve) => clock.after(5, resolve));
    assert.ok(clock.now() - start >= 4);
  });

  it("calls back at intervals until cancelled", async () => {
    let calls = 0;
    await new Promise<void>((resolve) => {
      const timer = clock.every(1, () => {
        if (++calls < 3) return;
        timer.cancel();
        resolve();
      });
    });
    assert.equal(calls, 3);
  });

  it("waits out a delay that is too long for setTimeout", async (context) => {
    context.mock.timers.enable({ apis: ["setTimeout"] });
    const month = 30 * 86_400_000;
    const seen: string[] = [];
    clock.after(month, () => seen.push("once"));
    const repeated = clock.every(month, () => seen.push("repeated"));
    clock.after(Infinity, () => seen.push("never"));
    const cancelled = clock.after(month, () => seen.push("cancelled"));
    context.mock.timers.tick(2 ** 31 - 1);
    assert.deepEqual(seen, []);
    cancelled.cancel();
    context.mock.timers.tick(month - 2 ** 31 + 1);
    assert.deepEqual(seen, ["once", "repeated"]);
    context.mock.timers.tick(2 ** 31 - 1);
    context.mock.timers.tick(month - 2 ** 31 + 1);
    assert.deepEqual(seen, ["once", "repeated", "repeated"]);
    repeated.cancel();
  });

  it("does not keep a thread alive unless asked to", async () => {
    const source = `
      const { SystemClock } = await import(${JSON.stringify(new URL("./clock.ts", import.meta.url).href)});
      const clock = new SystemClock();
      clock.after(3_600_000, () => {});
      clock.every(3_600_000, () => {});
    `;
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`));
    const [code] = await once(worker, "exit");
    assert.equal(code, 0);
  });
});
