import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "./clock.ts";
import { TurnShare } from "./turn-share.ts";

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
