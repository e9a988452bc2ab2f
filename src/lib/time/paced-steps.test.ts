import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "./clock.ts";
import { type PacedStep, PacedSteps } from "./paced-steps.ts";

function step(run: () => void): PacedStep {
  return { run, following: undefined };
}

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

test("runs steps in order, each behind the promises that the one before settled", async () => {
  const steps = new PacedSteps(new FakeClock(), 1);
  const seen: string[] = [];
  for (const name of ["a", "b", "c"]) {
    const settled = Promise.withResolvers<void>();
    void settled.promise
      .then(() => undefined)
      .then(() => undefined)
      .then(() => seen.push(`behind ${name}`));
    steps.add(
      step(() => {
        seen.push(name);
        settled.resolve();
      }),
    );
  }
  assert.deepEqual(seen, []);
  await turn();
  assert.deepEqual(seen, ["a", "behind a", "b", "behind b", "c", "behind c"]);
});

test("goes on in the next turn of the event loop when its share is used up", async () => {
  const clock = new FakeClock();
  const steps = new PacedSteps(clock, 2);
  let count = 0;
  const work = (): void => {
    count++;
    clock.advance(1);
  };
  for (let index = 0; index < 5; index++) steps.add(step(work));
  await turn();
  assert.equal(count, 2);
  await turn();
  assert.equal(count, 4);
  // A step that is added now waits behind the present ones.
  steps.add(step(() => count++));
  await turn();
  assert.equal(count, 6);
  steps.add(step(work));
  await turn();
  assert.equal(count, 7);
});
