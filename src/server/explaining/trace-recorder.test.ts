import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../lib/time/clock.ts";
import { isLookup, ownTime, TraceRecorder, type Visit } from "./trace-recorder.ts";

test("keeps plugins inside each other, with what they said and how long each took itself", () => {
  const clock = new FakeClock();
  const trace = new TraceRecorder(clock);
  trace.routed("a. A", ".:53");
  trace.enter("cache");
  trace.note("not kept");
  clock.advance(2);
  trace.enter("forward");
  trace.note("asks 192.0.2.1:53", { attempt: 1 });
  clock.advance(30);
  trace.leave("forward", "reply 0");
  clock.advance(1);
  trace.note("kept");
  trace.leave("cache", "reply 0");

  assert.deepEqual(
    trace.visits.map((visit) => [visit.plugin, visit.steps.map(({ note }) => note), ownTime(visit)]),
    [
      ["cache", ["not kept", "kept"], 3],
      ["forward", ["asks 192.0.2.1:53"], 30],
    ],
  );
  const [lookup] = trace.entries;
  assert.ok(lookup !== undefined && isLookup(lookup));
  assert.equal(lookup.block, ".:53");
  assert.deepEqual(trace.visits[1]?.steps[0]?.facts, { attempt: 1 });
});

test("a lookup stands below the plugin that made it, and what it led to below the lookup", () => {
  const trace = new TraceRecorder(new FakeClock());
  trace.routed("a. A", ".:53");
  trace.enter("kubernetes");
  trace.routed("b. A", "b.:53");
  trace.enter("hosts");
  trace.leave("hosts", "reply 0");
  trace.enter("forward");
  trace.leave("forward", "reply 0");
  trace.leave("kubernetes", "reply 0");

  const inner = trace.visits[0]?.inner ?? [];
  assert.equal(inner.length, 2);
  const [lookup, behind] = inner;
  assert.ok(lookup !== undefined && isLookup(lookup));
  assert.deepEqual(
    lookup.visits.map((entry) => (entry as Visit).plugin),
    ["hosts"],
  );
  assert.equal((behind as Visit).plugin, "forward");
});

test("a plugin that threw is never left, and those in front of it are", () => {
  const trace = new TraceRecorder(new FakeClock());
  trace.enter("errors");
  trace.enter("broken");
  trace.leave("errors", "failed 2");
  trace.leave("nobody", "reply 0");
  const [errors, broken] = trace.visits;
  assert.equal(errors?.outcome, "failed 2");
  assert.equal(broken?.outcome, undefined);
  assert.ok(broken !== undefined);
  assert.equal(ownTime(broken), undefined);
});

test("keeps no more than a bound of notes", () => {
  const trace = new TraceRecorder(new FakeClock());
  trace.enter("loquacious");
  for (let count = 0; count < 5_000; count++) trace.note("again");
  assert.ok((trace.visits[0]?.steps.length ?? 0) < 1_001);
});
