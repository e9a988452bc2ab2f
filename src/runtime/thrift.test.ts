import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/time/clock.ts";
import { Thrift } from "./thrift.ts";

const BEGUN = ["--no-turbofan", "is left", "--semi-space-growth-factor=1"];
const ENDED = ["--turbofan", "may grow"];

function prepare(): { clock: FakeClock; thrift: Thrift; flags: string[] } {
  const clock = new FakeClock();
  const flags: string[] = [];
  return {
    clock,
    flags,
    thrift: new Thrift({
      clock,
      setFlag: (flag) => flags.push(flag),
      growth: { begin: () => void flags.push("may grow"), end: () => void flags.push("is left") },
    }),
  };
}

test("V8 saves memory until the last of several has ended", () => {
  const { clock, flags, thrift } = prepare();
  const endOne = thrift.begin();
  const endOther = thrift.begin();
  assert.deepEqual(flags, BEGUN);
  endOne();
  endOne();
  assert.deepEqual(flags, BEGUN);
  endOther();
  assert.deepEqual(flags, [...BEGUN, ...ENDED]);
  assert.equal(clock.pendingTimers, 0);
});

test("saving without an end is over after ten seconds, and the next one starts again", () => {
  const { clock, flags, thrift } = prepare();
  const end = thrift.begin();
  clock.advance(10_000);
  assert.deepEqual(flags, [...BEGUN, ...ENDED]);
  end();
  thrift.begin()();
  assert.deepEqual(flags, [...BEGUN, ...ENDED, ...BEGUN, ...ENDED]);
});
