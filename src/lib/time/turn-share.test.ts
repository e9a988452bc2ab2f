import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { FakeClock } from "./clock.ts";
import { SharedTurns, TurnShare } from "./turn-share.ts";

test("goes on in the same turn of the event loop until its share is used up", async () => {
  const clock = new FakeClock();
  const share = new TurnShare(clock, 2);
  let turns = 0;
  setImmediate(() => turns++);
  await share.rest();
  clock.advance(1);
  await share.rest();
  assert.equal(turns, 0);
  clock.advance(1);
  await share.rest();
  assert.equal(turns, 1);
  setImmediate(() => turns++);
  clock.advance(1);
  await share.rest();
  assert.equal(turns, 1, "counts from the beginning of the turn");
});

test("several who share turns do no more in one than one of them may, and all come to an end", async () => {
  const clock = new FakeClock();
  const turns = new SharedTurns(clock, 2);
  const done: string[] = [];
  const work = async (name: string): Promise<void> => {
    for (let part = 0; part < 4; part++) {
      if (turns.isOver) await turns.rest();
      done.push(name);
      clock.advance(1);
    }
  };
  const all = Promise.all(["a", "b", "c"].map(work));
  const byTurn = [done.length];
  while (done.length < 12) {
    await nextTurn();
    byTurn.push(done.length);
  }
  await all;
  for (const [turn, count] of byTurn.entries()) assert.ok(count - (byTurn[turn - 1] ?? 0) <= 2, `${byTurn}`);
  // The task that has waited longest is next.
  assert.equal(done.join(""), "aaaabbccbbcc");
});

test("a share that was used up in one turn is renewed in the next, also without waiting", async () => {
  const clock = new FakeClock();
  const turns = new SharedTurns(clock, 2);
  assert.equal(turns.isOver, false);
  clock.advance(2);
  assert.equal(turns.isOver, true);
  await nextTurn();
  assert.equal(turns.isOver, false);
});

test("tasks that are put off run in their order, as many in a turn as there is time for", async () => {
  const clock = new FakeClock();
  const turns = new SharedTurns(clock, 2);
  const done: number[] = [];
  for (let number = 0; number < 6; number++)
    turns.later(() => {
      done.push(number);
      clock.advance(1);
    });
  const byTurn: number[] = [];
  while (done.length < 6) {
    await nextTurn();
    byTurn.push(done.length);
  }
  assert.deepEqual(done, [0, 1, 2, 3, 4, 5]);
  for (const [turn, count] of byTurn.entries()) assert.ok(count - (byTurn[turn - 1] ?? 0) <= 2, `${byTurn}`);
});

describe("what begins alone", () => {
  test("does not have the end of the turn noticed until something follows right behind it", async (context) => {
    const clock = new FakeClock();
    const turns = new SharedTurns(clock, 2);
    const { mock } = context.mock.method(globalThis, "setImmediate");
    for (let part = 0; part < 5; part++) {
      assert.equal(turns.begin(), false);
      // Longer than a share: but what comes after a pause has one of its own.
      clock.advance(3);
      turns.pause();
      clock.advance(1);
    }
    assert.equal(mock.callCount(), 0);
    assert.equal(turns.begin(), false);
    assert.equal(turns.isOver, false);
    assert.equal(mock.callCount(), 1);
    turns.pause();
    await nextTurn();
    assert.equal(turns.begin(), false, "its share is there again");
    assert.equal(mock.callCount(), 1);
  });

  test("shares a turn with what comes right behind it", async () => {
    const clock = new FakeClock();
    const turns = new SharedTurns(clock, 2);
    const done: string[] = [];
    const chunks = async (name: string): Promise<void> => {
      for (let chunk = 0; chunk < 4; chunk++) {
        if (turns.begin()) await turns.rest();
        done.push(name);
        clock.advance(1);
        turns.pause();
        await Promise.resolve();
      }
    };
    const all = Promise.all(["a", "b"].map(chunks));
    const byTurn = [done.length];
    while (done.length < 8) {
      await nextTurn();
      byTurn.push(done.length);
    }
    await all;
    for (const [turn, count] of byTurn.entries())
      assert.ok(count - (byTurn[turn - 1] ?? 0) <= 2, `${byTurn}`);
  });

  test("has the share of its turn used up by parts behind it", () => {
    const clock = new FakeClock();
    const turns = new SharedTurns(clock, 2);
    assert.equal(turns.begin(), false);
    clock.advance(1);
    assert.equal(turns.isOver, false);
    clock.advance(1);
    assert.equal(turns.isOver, true);
  });
});
