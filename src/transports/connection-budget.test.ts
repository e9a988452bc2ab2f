import assert from "node:assert/strict";
import { test } from "node:test";
import { type BudgetedConnection, ConnectionBudget } from "./connection-budget.ts";

/** A connection that is closed by the budget alone. */
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

test("the longest silent go where connections would take more memory than they may", () => {
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

test("none goes that waits for an answer, and one may be there however large", () => {
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

test("a part makes room among the connections of the whole where it has none of its own", () => {
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

test("a bound that has become less is reached in portions", () => {
  const budget = new ConnectionBudget();
  const connections = opened(budget, 100, 10);
  budget.limits = { ...budget.limits, maxOctets: 10 };
  opened(budget, 1, 10);
  assert.equal(connections.filter(({ isOpen }) => !isOpen).length, 16);
  opened(budget, 8, 10);
  assert.equal(budget.octets, 10);
});

test("long chunks that pass are told of as garbage, short ones are not", () => {
  let told = 0;
  const whole = new ConnectionBudget({}, undefined, () => told++);
  const part = new ConnectionBudget({}, whole);
  for (let chunk = 0; chunk < 100_000; chunk++) part.notePassed(1_000);
  assert.equal(told, 0);
  for (let chunk = 0; chunk < 1_024; chunk++) part.notePassed(64 * 1024);
  assert.equal(told, 8);
});

test("where memory is tight, long messages are not taken", () => {
  const whole = new ConnectionBudget({ takesLong: false });
  const part = new ConnectionBudget({}, whole);
  assert.deepEqual([part.takes(4_095), part.takes(4_096)], [true, false]);
  whole.limits = { ...whole.limits, takesLong: true };
  assert.equal(part.takes(65_535), true);
});
