import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../time/clock.ts";
import { RareErrors } from "./rare-errors.ts";

test("the first error is told at once, then one in ten seconds with the number of those between", () => {
  const clock = new FakeClock();
  const told: string[] = [];
  const errors = new RareErrors(clock, ({ message }) => told.push(message));
  for (let each = 0; each < 1_000; each++) errors.note(new Error(`first ${each}`));
  assert.deepEqual(told, ["first 0"]);
  clock.advance(9_999);
  errors.note(new Error("second"));
  assert.equal(told.length, 1);
  clock.advance(1);
  errors.note(new Error("third"));
  assert.deepEqual(told.slice(1), ["third (and 1000 more errors since the last message)"]);
  clock.advance(10_000);
  errors.note(new Error("fourth"));
  assert.deepEqual(told.slice(2), ["fourth"]);
});
