import assert from "node:assert/strict";
import { test } from "node:test";
import { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { type MemoryBudget, memoryBudget } from "./memory-budget.ts";
import { MemoryWatch } from "./memory-watch.ts";

const MIB = 1024 * 1024;

function watch(limit: number | undefined, resident = 80 * MIB, threads = 1, leads = true) {
  const clock = new FakeClock();
  const metrics = new MetricsRegistry();
  const warnings: string[] = [];
  const bounds: MemoryBudget[] = [];
  const machine = { resident, relieved: 0 };
  const memory = new MemoryWatch({
    leads,
    limit,
    resident: () => machine.resident,
    listeners: { waiting: 3, unsent: 4711, connections: 1000, bound: (budget) => bounds.push(budget) },
    relieve: () => machine.relieved++,
    clock,
    metrics,
    log: { warning: (text) => warnings.push(text) },
  });
  memory.start(threads);
  return { clock, metrics, warnings, bounds, machine, memory };
}

for (const [limit, waiting, unsent, connections] of [
  [undefined, 10_000, 32 * MIB, Number.POSITIVE_INFINITY],
  [1024 * MIB, 10_000, 32 * MIB, 256 * MIB],
  [170 * MIB, 10_000, (170 * MIB) / 8, (170 * MIB) / 4],
  [40 * MIB, 4_096, 5 * MIB, 10 * MIB],
  [4 * MIB, 500, MIB, 2 * MIB],
] as const)
  test(`of ${limit ?? "any"} octets ${waiting} queries and ${unsent} octets may wait, connections have ${connections}`, () => {
    const budget = memoryBudget(limit);
    assert.deepEqual([budget.waiting, budget.unsent, budget.connections], [waiting, unsent, connections]);
  });

for (const [limit, threads, waiting, waitingOfAll, unsent] of [
  [undefined, 2, 10_000, Number.POSITIVE_INFINITY, 16 * MIB],
  [1024 * MIB, 4, 10_000, 26_214, 8 * MIB],
  [170 * MIB, 1, 10_000, 17_408, (170 * MIB) / 8],
  [170 * MIB, 2, 8_704, 8_704, (170 * MIB) / 16],
  [170 * MIB, 64, 500, 500, MIB],
] as const)
  test(`${threads} threads share ${limit ?? "any"} octets: ${waitingOfAll} queries and ${unsent} octets for each`, () => {
    const budget = memoryBudget(limit, threads);
    assert.deepEqual([budget.waiting, budget.waitingOfAll, budget.unsent], [waiting, waitingOfAll, unsent]);
  });

test("tight memory quarters what may wait until it has eased, and is told once and counted each time", async () => {
  const { clock, metrics, warnings, bounds, machine, memory } = watch(200 * MIB);
  const { waiting } = memoryBudget(200 * MIB);
  const seen = () => bounds.map((budget) => budget.waiting);
  const takesLong = () => bounds.map((budget) => budget.takesLong);
  clock.advance(1_000);
  assert.deepEqual(seen(), [waiting]);
  machine.resident = 181 * MIB;
  clock.advance(1_000);
  assert.deepEqual(seen(), [waiting, waiting / 4]);
  assert.equal(memory.isTight, true);
  // Not yet eased.
  machine.resident = 175 * MIB;
  clock.advance(1_000);
  assert.equal(bounds.length, 2);
  machine.resident = 160 * MIB;
  clock.advance(1_000);
  assert.deepEqual(seen(), [waiting, waiting / 4, waiting]);
  assert.deepEqual(takesLong(), [true, false, true]);
  assert.equal(memory.isTight, false);
  assert.equal(machine.relieved, 1);
  machine.resident = 190 * MIB;
  clock.advance(1_000);
  assert.equal(machine.relieved, 2);
  assert.deepEqual(warnings, [
    "memory is low: 181 MiB of 200 MiB are in use. Fewer queries may be pending until that changes (portolan_memory_pressure_total counts how often)",
  ]);
  const { body: text } = await metrics.expose();
  assert.match(text, /^portolan_memory_pressure_total 2$/m);
  assert.match(text, /^portolan_memory_limit_bytes 209715200$/m);
  assert.match(text, /^portolan_memory_waiting_bytes 3840$/m);
  assert.match(text, /^portolan_memory_connections_bytes 5711$/m);
  memory.stop();
  assert.equal(clock.pendingTimers, 0);
});

test("a limit below what the server needs is warned of, with both figures", () => {
  assert.deepEqual(watch(64 * MIB).warnings, [
    "the memory limit of 64 MiB is below the 96 MiB that the server needs with this Corefile: raise the limit, or the server may be killed",
  ]);
  assert.deepEqual(watch(96 * MIB).warnings, []);
});

test("each thread needs memory to work with", () => {
  assert.match(watch(170 * MIB, 120 * MIB, 4).warnings.join(), /170 MiB is below the 184 MiB/);
  assert.deepEqual(watch(170 * MIB, 120 * MIB, 3).warnings, []);
});

test("a thread that does not lead sheds as all do, and leaves it to the leader to tell of it", async () => {
  const { clock, metrics, warnings, bounds, machine } = watch(200 * MIB, 190 * MIB, 2, false);
  clock.advance(1_000);
  assert.deepEqual(
    bounds.map(({ unsent }) => unsent),
    [(200 * MIB) / 16, (200 * MIB) / 64],
  );
  assert.equal(machine.relieved, 1);
  assert.deepEqual(warnings, []);
  const { body } = await metrics.expose();
  assert.doesNotMatch(body, /portolan_memory_(pressure|limit)/);
  assert.match(body, /^portolan_memory_connections_bytes 5711$/m);
});

test("a reload to another number of threads shares anew, tight or not", () => {
  const { clock, bounds, machine, memory } = watch(160 * MIB);
  machine.resident = 150 * MIB;
  clock.advance(250);
  memory.start(2);
  const unsent = bounds.map((budget) => budget.unsent / MIB);
  assert.deepEqual(unsent, [20, 5, 2.5]);
});

test("without a limit nothing is measured", () => {
  const { clock, warnings, bounds } = watch(undefined);
  assert.equal(clock.pendingTimers, 0);
  assert.equal(bounds.length, 1);
  assert.deepEqual(warnings, []);
});

test("who knows that much has come has it looked at once", () => {
  const { bounds, machine, memory } = watch(200 * MIB);
  machine.resident = 190 * MIB;
  memory.look();
  assert.deepEqual(
    bounds.map(({ takesLong }) => takesLong),
    [true, false],
  );
});
