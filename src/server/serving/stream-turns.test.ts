import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { StreamTurns } from "./stream-turns.ts";

test("streams take turns, and have a millisecond of each turn of the event loop together", async () => {
  let now = 0;
  const turns = new StreamTurns({ now: () => now });
  const made: string[] = [];
  const stream = async (name: string): Promise<void> => {
    for (let message = 1; message <= 2; message++) {
      await turns.run(async () => {
        now += 0.5;
        made.push(`${name}${message}`);
      });
    }
  };
  const all = Promise.all(["a", "b", "c"].map(stream));
  assert.deepEqual(made, []);
  const counts: number[] = [];
  for (let before = 0; made.length < 6; before = made.length) {
    await nextTurn();
    counts.push(made.length - before);
  }
  await all;
  assert.deepEqual(made, ["a1", "b1", "c1", "a2", "b2", "c2"]);
  // A message takes half a millisecond.
  assert.deepEqual(
    counts.filter((count) => count > 0),
    [2, 2, 2],
  );
});

test("a stream that waits, or fails, holds up no other", async () => {
  const turns = new StreamTurns({ now: () => 0 });
  const gate = Promise.withResolvers<string>();
  const waiting = turns.run(() => gate.promise);
  await assert.rejects(
    turns.run(() => Promise.reject(new RangeError("no message"))),
    RangeError,
  );
  assert.equal(await turns.run(async () => "made"), "made");
  gate.resolve("late");
  assert.equal(await waiting, "late");
});
