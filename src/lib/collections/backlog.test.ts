import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { FakeClock } from "../time/clock.ts";
import { SharedTurns } from "../time/turn-share.ts";
import { Backlog } from "./backlog.ts";

function backlog(work: (item: number) => void) {
  const clock = new FakeClock();
  const done: number[] = [];
  const items = new Backlog<number>(new SharedTurns(clock, 0.5), (item) => {
    done.push(item);
    clock.advance(0.1);
    work(item);
  });
  return { items, done };
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

// The share of a turn is five of them, and the clock is looked at behind each fourth; the first turn has two shares.
test("does at once what fits into a turn, and the rest in later ones, in order", async () => {
  const { items, done } = backlog(() => undefined);
  items.add([0, 1]);
  assert.deepEqual(done, [0, 1]);
  items.add(numbers(100).slice(2));
  let before = 2;
  for (let turns = 0; done.length < 100; turns++) {
    assert.ok(turns < 100 && done.length - before <= 16, `${done.length - before} in turn ${turns}`);
    before = done.length;
    await nextTurn();
  }
  assert.deepEqual(done, numbers(100));
  items.add([100]);
  assert.equal(done.length, 101, "at once again");
});

test("what comes while it works waits for its place", async () => {
  const { items, done } = backlog((item) => {
    if (item === 0) items.add([2, 3]);
  });
  items.add([0, 1]);
  assert.deepEqual(done, [0, 1, 2, 3]);
});

test("what one of them throws does not keep the others from their turn", async () => {
  const { items, done } = backlog((item) => {
    if (item === 1) throw new Error("one");
  });
  assert.throws(() => items.add(numbers(4)), /one/);
  await nextTurn();
  assert.deepEqual(done, numbers(4));
});

test("what is cleared is not done, within the work or between turns", async () => {
  const { items, done } = backlog((item) => {
    if (item === 5) items.clear();
  });
  items.add(numbers(100));
  assert.ok(done.length < 10);
  await nextTurn();
  await nextTurn();
  assert.deepEqual(done, numbers(6));
  items.add(numbers(5));
  assert.deepEqual(done.slice(6), numbers(5));
  items.add(numbers(50));
  items.clear();
  await nextTurn();
  assert.ok(done.length < 30, `${done.length}`);
});
