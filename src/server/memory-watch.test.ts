import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { MetricsRegistry } from "../lib/metrics.ts";
import { type MemoryBudget, memoryBudget } from "./memory-budget.ts";
import { MemoryWatch } from "./memory-watch.ts";

const MIB = 1024 * 1024;

function watch(limit: number | undefined, resident = 80 * MIB) {
  const clock = new FakeClock();
  const metrics = new MetricsRegistry();
  const warnings: string[] = [];
  const bounds: MemoryBudget[] = [];
  const machine = { resident };
  const memory = new MemoryWatch({
    budget: memoryBudget(limit),
    resident: () => machine.resident,
    listeners: { waiting: 3, unsent: 4711, bound: (budget) => bounds.push(budget) },
    clock,
    metrics,
    log: { warning: (text) => warnings.push(text) },
  });
  memory.start();
  return { clock, metrics, warnings, bounds, machine, memory };
}

for (const [limit, waiting, unsent] of [
  [undefined, 10_000, 32 * MIB],
  [1024 * MIB, 10_000, 32 * MIB],
  [170 * MIB, 10_000, (170 * MIB) / 8],
  [40 * MIB, 4_096, 5 * MIB],
  [4 * MIB, 500, MIB],
] as const)
  test(`of ${limit ?? "any"} octets ${waiting} queries and ${unsent} octets may wait`, () => {
    const budget = memoryBudget(limit);
    assert.deepEqual([budget.waiting, budget.unsent], [waiting, unsent]);
  });

test("tight memory quarters what may wait until it has eased, and is told once and counted each time", async () => {
  const { clock, metrics, warnings, bounds, machine, memory } = watch(200 * MIB);
  const { waiting } = memoryBudget(200 * MIB);
  const seen = () => bounds.map((budget) => budget.waiting);
  clock.advance(1_000);
  assert.deepEqual(seen(), [waiting]);
  machine.resident = 181 * MIB;
  clock.advance(1_000);
  assert.deepEqual(seen(), [waiting, waiting / 4]);
  // Not yet eased.
  machine.resident = 175 * MIB;
  clock.advance(1_000);
  assert.equal(bounds.length, 2);
  machine.resident = 160 * MIB;
  clock.advance(1_000);
  assert.deepEqual(seen(), [waiting, waiting / 4, waiting]);
  machine.resident = 190 * MIB;
  clock.advance(1_000);
  assert.deepEqual(warnings, [
    "memory is low: 181 MiB of 200 MiB are in use, so fewer queries may wait (portolan_memory_pressure_total counts how often)",
  ]);
  const { body: text } = await metrics.expose();
  assert.match(text, /^portolan_memory_pressure_total 2$/m);
  assert.match(text, /^portolan_memory_limit_bytes 209715200$/m);
  assert.match(text, /^portolan_memory_waiting_bytes 3840$/m);
  assert.match(text, /^portolan_memory_connections_bytes 4711$/m);
  memory.stop();
  assert.equal(clock.pendingTimers, 0);
});

test("a limit below what the server needs is warned of, with both figures", () => {
  assert.deepEqual(watch(64 * MIB).warnings, [
    "the memory limit of 64 MiB is below the 96 MiB that the server needs with this Corefile: raise the limit, or the server may be killed",
  ]);
  assert.deepEqual(watch(96 * MIB).warnings, []);
});

test("without a limit nobody looks", () => {
  const { clock, warnings, bounds } = watch(undefined);
  assert.equal(clock.pendingTimers, 0);
  assert.equal(bounds.length, 1);
  assert.deepEqual(warnings, []);
});
