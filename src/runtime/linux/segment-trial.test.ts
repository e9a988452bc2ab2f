import assert from "node:assert/strict";
import { test } from "node:test";
import { SegmentTrial } from "./segment-trial.ts";

const ALL = Number.POSITIVE_INFINITY;
const SECOND = 1_000;
const MINUTE = 60 * SECOND;

function trialAt(clock: { now: number }): SegmentTrial {
  return new SegmentTrial(() => clock.now);
}

test("two datagrams are risked, and all are cut as soon as the peer has replied to either", () => {
  for (const replied of [0x1234, 0x5678]) {
    const trial = trialAt({ now: 0 });
    assert.equal(trial.allowance, 2);
    trial.sent(0x1234, 0x5678);
    assert.equal(trial.allowance, 0);
    trial.arrived(0x9999);
    assert.equal(trial.allowance, 0);
    trial.arrived(replied);
    assert.equal(trial.allowance, ALL);
  }
});

test("without a reply, the next two are risked after a time that doubles up to ten minutes", () => {
  const clock = { now: 0 };
  const trial = trialAt(clock);
  const risked: number[] = [];
  for (const end = 60 * MINUTE; clock.now < end; clock.now += SECOND / 2) {
    if (trial.allowance === 0) continue;
    assert.equal(trial.allowance, 2);
    risked.push(clock.now);
    trial.sent(1, 2);
  }
  const waits = risked.slice(1).map((time, index) => (time - (risked[index] ?? 0)) / SECOND);
  // Each time, two seconds are for the reply.
  assert.deepEqual(waits.slice(0, 8), [7, 12, 22, 42, 82, 162, 322, 602]);
  assert.ok(waits.slice(7).every((wait) => wait === 602));
  // A reply that is not to a datagram under watch proves nothing.
  clock.now += 2 * SECOND;
  assert.equal(trial.allowance, 0);
  trial.arrived(1);
  assert.equal(trial.allowance, 0);
});

test("who has proved itself is watched on, and goes back to two at a time when replies stay away", () => {
  const clock = { now: 0 };
  const trial = trialAt(clock);
  trial.sent(1, 2);
  trial.arrived(2);
  trial.sent(3, 4);
  // One message is watched at a time.
  trial.sent(5, 6);
  trial.arrived(5);
  clock.now += 1.9 * SECOND;
  assert.equal(trial.allowance, ALL);
  clock.now += 0.1 * SECOND;
  assert.equal(trial.allowance, 2);
  trial.sent(7, 8);
  trial.arrived(8);
  assert.equal(trial.allowance, ALL);
});

test("where the kernel refuses, nothing is cut until the next trial", () => {
  const clock = { now: 0 };
  const trial = trialAt(clock);
  trial.sent(1, 2);
  trial.arrived(1);
  trial.sent(3, 4);
  trial.refused();
  assert.equal(trial.allowance, 0);
  clock.now += 5 * SECOND;
  assert.equal(trial.allowance, 2);
});
