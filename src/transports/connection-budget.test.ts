import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type BudgetedConnection, ConnectionBudget } from "./connection-budget.ts";

/** A connection that only the budget closes. */
class Connection implements BudgetedConnection {
  budgetPlace: BudgetedConnection["budgetPlace"];
  awaitsAnswers = false;
  isOpen = true;
  readonly octets: number;

  constructor(octets: number) {
    this.octets = octets;
  }

  destroy(): void {
    this.isOpen = false;
  }
}

function opened(budget: ConnectionBudget, count: number, octets: number): Connection[] {
  return Array.from({ length: count }, () => {
    const connection = new Connection(octets);
    assert.equal(budget.admit(connection), true);
    return connection;
  });
}

test("the longest silent connections are closed when all would take too much memory", () => {
  const budget = new ConnectionBudget({ maxOctets: 100 });
  const [first, second, third] = opened(budget, 3, 30);
  assert.ok(first && second && third);
  budget.heardFrom(first);
  third.awaitsAnswers = true;
  let turnedAway = 0;
  assert.equal(
    budget.admit(new Connection(60), () => turnedAway++),
    true,
  );
  assert.deepEqual([first.isOpen, second.isOpen, third.isOpen], [false, false, true]);
  assert.deepEqual([turnedAway, budget.connections, budget.octets], [2, 2, 90]);
});

test("a connection that waits for an answer stays, and one connection may be of any size", () => {
  const budget = new ConnectionBudget({ maxOctets: 10 });
  const [only] = opened(budget, 1, 30);
  assert.ok(only);
  only.awaitsAnswers = true;
  assert.equal(budget.admit(new Connection(1)), false);
  assert.deepEqual([only.isOpen, budget.octets], [true, 30]);
  budget.forget(only);
  budget.forget(only);
  assert.equal(budget.octets, 0);
});

test("a part closes connections of the whole if it has none of its own", () => {
  const whole = new ConnectionBudget({ maxOctets: 100 });
  const part = new ConnectionBudget({ maxConnections: 5 }, whole);
  const others = opened(whole, 3, 30);
  const [own] = opened(part, 1, 20);
  assert.ok(own);
  assert.deepEqual(
    others.map(({ isOpen }) => isOpen),
    [false, true, true],
  );
  assert.deepEqual([whole.octets, part.octets, whole.connections, part.connections], [80, 80, 2, 1]);
});

test("a lowered limit is reached in portions", () => {
  const budget = new ConnectionBudget();
  const connections = opened(budget, 100, 10);
  budget.limits = { ...budget.limits, maxOctets: 10 };
  opened(budget, 1, 10);
  assert.equal(connections.filter(({ isOpen }) => !isOpen).length, 16);
  opened(budget, 8, 10);
  assert.equal(budget.octets, 10);
});

test("long chunks are reported as garbage, short ones are not", () => {
  let told = 0;
  const whole = new ConnectionBudget({}, undefined, () => told++);
  const part = new ConnectionBudget({}, whole);
  for (let chunk = 0; chunk < 100_000; chunk++) part.notePassed(1_000);
  assert.equal(told, 0);
  for (let chunk = 0; chunk < 1_024; chunk++) part.notePassed(64 * 1024);
  assert.equal(told, 8);
});

test("under memory pressure, long messages are refused", () => {
  const whole = new ConnectionBudget({ takesLong: false });
  const part = new ConnectionBudget({}, whole);
  assert.deepEqual([part.takes(4_095), part.takes(4_096)], [true, false]);
  whole.limits = { ...whole.limits, takesLong: true };
  assert.equal(part.takes(65_535), true);
});

describe("when connections hold more than the common limit", () => {
  class Holder extends Connection {
    givenUp = 0;

    giveUp(): void {
      this.givenUp++;
      this.destroy();
    }
  }

  function holding(budget: ConnectionBudget, ...octets: readonly number[]): Holder[] {
    return octets.map((held) => {
      const holder = new Holder(1);
      budget.admit(holder);
      budget.noteHeld(holder, held);
      return holder;
    });
  }

  const open = (holders: readonly Holder[]): boolean[] => holders.map(({ isOpen }) => isOpen);

  test("the largest holders are closed, until a quarter is free, each once", () => {
    const whole = new ConnectionBudget({ maxUnsentOfAll: 100 });
    const others = holding(whole, 10, 40, 30, 5);
    const [own] = holding(new ConnectionBudget({}, whole), 15);
    assert.ok(own && others[3]);
    assert.deepEqual([whole.unsent, ...open(others), own.isOpen], [100, true, true, true, true, true]);
    whole.noteHeld(others[3], 6);
    assert.deepEqual([whole.unsent, ...open(others), own.isOpen], [61, true, false, true, true, true]);
    assert.equal(others[1]?.givenUp, 1);
  });

  test("a lowered limit closes them at once", () => {
    const budget = new ConnectionBudget({ maxUnsentOfAll: 100 });
    const holders = holding(budget, 10, 40, 30);
    budget.limits = { ...budget.limits, maxUnsentOfAll: 20 };
    assert.deepEqual([budget.unsent, ...open(holders)], [10, true, false, false]);
  });

  test("a connection whose client reads nothing counts with the buffers of the system", () => {
    const budget = new ConnectionBudget({ maxUnsentOfAll: 100, ofSystem: 30 });
    const [stuck, quick] = holding(budget, 20, 40);
    assert.ok(stuck && quick);
    budget.noteHeld(stuck, 25, true);
    assert.equal(budget.unsent, 95);
    budget.noteHeld(quick, 46);
    assert.deepEqual([stuck.isOpen, quick.isOpen, budget.unsent], [false, true, 46]);
    budget.noteHeld(quick, 0, true);
    assert.equal(budget.unsent, 0);
  });

  test("each one's share shrinks with their number", () => {
    const budget = new ConnectionBudget({ maxUnsent: 50, maxUnsentOfAll: 100 });
    const holders = holding(budget, 1, 1, 1, 1);
    assert.equal(budget.unsentLimit, 25);
    for (const holder of holders.slice(1)) budget.forget(holder);
    assert.deepEqual([budget.unsentLimit, budget.unsent], [50, 1]);
  });
});
