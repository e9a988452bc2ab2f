import assert from "node:assert/strict";
import { test } from "node:test";
import { LOCK_WORDS, SharedLock, Taken } from "./shared-lock.ts";

/** Threads with one lock and one time. */
function threads(count: number) {
  const words = new Int32Array(new SharedArrayBuffer(4 * LOCK_WORDS));
  const time = { now: 1_000_000 };
  const locks = Array.from({ length: count }, () => new SharedLock(words, 0, () => time.now));
  const [first, second, third] = locks;
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  return { words, time, first, second, third };
}

test("one thread has the lock at a time", () => {
  const { first, second } = threads(3);
  assert.equal(first.take(), Taken.WHOLE);
  assert.equal(second.take(), Taken.NOT);
  first.release();
  assert.equal(second.take(), Taken.WHOLE);
});

test("a thread that finds the lock taken for two seconds takes it over, and only one does", () => {
  const { time, first, second, third } = threads(3);
  first.take();
  const taken = [];
  for (let look = 0; look < 21; look++) {
    taken.push(second.take(), third.take());
    time.now += 100;
  }
  assert.deepEqual(
    taken.map((one) => one === Taken.ABANDONED),
    taken.map((_, index) => index === 40),
  );
  // It is the owner from now on.
  assert.equal(third.take(), Taken.NOT);
  second.release();
  assert.equal(third.take(), Taken.WHOLE);
});

test("a thread that was stopped together with all others keeps its lock", () => {
  const { time, first, second } = threads(3);
  first.take();
  assert.equal(second.take(), Taken.NOT);
  // SIGSTOP and SIGCONT, or a machine that slept: no thread ran, but time went on.
  time.now += 30_000;
  assert.equal(second.take(), Taken.NOT);
  assert.equal(second.take(), Taken.NOT);
  first.release();
  assert.equal(second.take(), Taken.WHOLE);
});

test("the stamp of the taking before says nothing of one that has just begun", () => {
  const { words, time, first, second } = threads(3);
  first.take();
  first.release();
  time.now += 60_000;
  // The first instruction of the next taking, which has not come to its stamp yet.
  Atomics.store(words, 0, 1);
  assert.equal(second.take(), Taken.NOT);
});
