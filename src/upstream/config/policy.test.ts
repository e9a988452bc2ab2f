import assert from "node:assert/strict";
import { it } from "node:test";
import { TRUE_RANDOM } from "../fixtures/test-request.ts";
import { makePolicy, type Policy } from "./policy.ts";

function order(policy: Policy, count: number): number[] {
  const first = policy.first(count);
  return [first, ...policy.others(first, count)];
}

it("sequential starts with the first each time", () => {
  const policy = makePolicy("sequential", TRUE_RANDOM);
  for (let query = 0; query < 3; query++) assert.deepEqual(order(policy, 3), [0, 1, 2]);
});

it("round_robin starts with each in turn, and keeps the order of the others", () => {
  const policy = makePolicy("round_robin", TRUE_RANDOM);
  const orders = Array.from({ length: 6 }, () => order(policy, 3));
  assert.deepEqual(orders, [
    [1, 0, 2],
    [2, 0, 1],
    [0, 1, 2],
    [1, 0, 2],
    [2, 0, 1],
    [0, 1, 2],
  ]);
});

it("random uses every order equally often", () => {
  const policy = makePolicy("random", TRUE_RANDOM);
  const counts = new Map<string, number>();
  for (let query = 0; query < 6_000; query++) {
    const key = order(policy, 3).join("");
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  assert.equal(counts.size, 6);
  for (const [key, count] of counts) assert.ok(count > 800 && count < 1_200, `${key}: ${count}`);
});

it("one upstream needs no choice", () => {
  for (const name of ["random", "round_robin", "sequential"] as const)
    assert.deepEqual(order(makePolicy(name, TRUE_RANDOM), 1), [0]);
});
