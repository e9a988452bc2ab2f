import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "./turns.ts";

function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

test("one is let through in a turn of the event loop, in their order", async () => {
  const turns = new Turns(3);
  const passed: number[] = [];
  for (const number of [1, 2, 3]) void turns.take()?.then(() => passed.push(number));
  assert.equal(turns.take(), undefined);
  for (const expected of [[1], [1, 2], [1, 2, 3]]) {
    await turn();
    assert.deepEqual(passed, expected);
  }
  await turns.take();
});
