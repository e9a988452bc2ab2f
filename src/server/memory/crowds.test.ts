import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionBudget } from "../../transports/connection-budget.ts";
import { Crowds } from "./crowds.ts";

test("each bound on connections is told of once, the listener's own as such", () => {
  const told: string[] = [];
  const crowds = new Crowds(65_536, (text) => told.push(text));
  const budget = new ConnectionBudget({ maxConnections: 16_384 });
  for (let time = 0; time < 2; time++) {
    crowds.note(budget, "https://.:443", 200);
    crowds.note(budget, "grpc://.:8443", 100);
    crowds.note(budget, "https://.:443", undefined);
    crowds.note(budget, "dns://.:53", undefined);
  }
  assert.deepEqual(told, [
    "more than 200 connections to https://.:443: closing the longest idle ones",
    "more than 100 connections to grpc://.:8443: closing the longest idle ones",
    "more than 16384 connections: closing the longest idle ones (the process may have 65536 files open)",
  ]);
});

test("where memory is what they have too little of, it is told so", () => {
  const told: string[] = [];
  const crowds = new Crowds(1024, (text) => told.push(text));
  const budget = new ConnectionBudget({ maxOctets: 3 * 1024 * 1024 });
  budget.admit({
    budgetPlace: undefined,
    awaitsAnswers: false,
    octets: 2 * 1024 * 1024,
    destroy: () => undefined,
  });
  crowds.note(budget, "dns://.:53", undefined);
  assert.deepEqual(told, [
    "more connections than the memory limit has room for (2 MiB): closing the longest idle ones",
  ]);
});
