import assert from "node:assert/strict";
import { it } from "node:test";
import { DialTimeout } from "./dial-timeout.ts";

it("starts with the longest and follows the duration of connections", () => {
  const timeout = new DialTimeout();
  assert.equal(timeout.current, 30_000);
  timeout.record(3_000);
  assert.equal(timeout.current, 24_000);
  for (let count = 0; count < 50; count++) timeout.record(1);
  assert.equal(timeout.current, 1_000);
  for (let count = 0; count < 50; count++) timeout.record(60_000);
  assert.equal(timeout.current, 30_000);
});
