import assert from "node:assert/strict";
import { test } from "node:test";
import { doubtsAboutLoad, doubtsAboutTiming } from "./doubts.ts";

const WORKLOAD = { rcodes: ["NOERROR", "NXDOMAIN"], needsNewNames: true };
const result = { sent: 1_000, answered: 1_000, lost: 0, seconds: 1, rcodes: { NOERROR: 900, NXDOMAIN: 100 } };

test("a clean load gives no doubts", () => {
  assert.deepEqual(doubtsAboutLoad(WORKLOAD, { lines: 1_000 }, { result, othersShare: 0.01 }), []);
});

test("losses, rcodes, names asked again and other processes do", () => {
  const bad = { ...result, lost: 3, rcodes: { NOERROR: 990, SERVFAIL: 7 } };
  assert.deepEqual(doubtsAboutLoad(WORKLOAD, { lines: 500 }, { result: bad, othersShare: 0.5 }), [
    "3 of 1000 lost",
    "7 answers SERVFAIL",
    "names asked again, as there were 500 for 1000 queries",
    "other processes used 50 % of a core",
  ]);
});

test("names may come again where that changes nothing", () => {
  const workload = { ...WORKLOAD, needsNewNames: false };
  assert.deepEqual(doubtsAboutLoad(workload, { lines: 10 }, { result, othersShare: 0 }), []);
});

test("a late generator is told", () => {
  const onTime = { p50: 2, p99: 10, p999: 50, max: 4_000 };
  assert.deepEqual(doubtsAboutTiming({ sendDelay: onTime }), []);
  assert.match(doubtsAboutTiming({ sendDelay: { ...onTime, p99: 2_500 } }).join(), /p99 2\.5 ms/);
  assert.deepEqual(doubtsAboutTiming({ sendDelay: undefined }), ["no answer at half rate"]);
});
