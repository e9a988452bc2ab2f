import assert from "node:assert/strict";
import { test } from "node:test";
import { DROPPED, Failure } from "../../plugin/index.ts";
import { FakeClock } from "../../plugin/testing.ts";
import { QuerySpans } from "./query-spans.ts";

/** `name<parent: from-to error`. */
function told({ spans }: QuerySpans): string[] {
  return spans.map(
    ({ name, parent, startedAt, endedAt, error }) =>
      `${name}<${spans[parent]?.name ?? ""}: ${startedAt}-${endedAt}${error === undefined ? "" : ` ${error}`}`,
  );
}

test("plugins are nested as they call each other", () => {
  const clock = new FakeClock();
  const spans = new QuerySpans(clock, true);
  const cache = spans.enter("cache");
  clock.advance(1);
  const forward = spans.enter("forward");
  clock.advance(10);
  spans.exchanged({ address: "192.0.2.1", port: 53, protocol: "udp" }, 2, 11, undefined);
  spans.exchanged({ address: "192.0.2.2", port: 53, protocol: "udp" }, 3, 9, new Error("timed out"));
  spans.leave(forward, new Failure(2, new Error("no upstream")));
  clock.advance(1);
  spans.leave(cache, DROPPED);
  const hosts = spans.enter("hosts");
  spans.leave(hosts, DROPPED);
  assert.deepEqual(told(spans), [
    "cache<: 0-12",
    "forward<cache: 1-11 no upstream",
    "udp<forward: 2-11",
    "udp<forward: 3-9 timed out",
    "hosts<: 12-12",
  ]);
});

test("the span of a plugin that threw ends with its caller's, and spans beside it continue", () => {
  const clock = new FakeClock();
  const spans = new QuerySpans(clock, true);
  const errors = spans.enter("errors");
  spans.enter("broken");
  clock.advance(5);
  spans.leave(errors, new Failure(2));
  const one = spans.enter("one");
  spans.leave(one, DROPPED);
  assert.deepEqual(told(spans), ["errors<: 0-5 ", "broken<errors: 0-5 it threw", "one<: 5-5"]);
});

test("nested spans may end in any order", () => {
  const clock = new FakeClock();
  const spans = new QuerySpans(clock, true);
  const first = spans.enter("first");
  const outer = spans.enter("outer");
  clock.advance(1);
  spans.leave(outer, DROPPED);
  const second = spans.enter("second");
  clock.advance(1);
  spans.leave(second, DROPPED);
  spans.leave(second, DROPPED);
  clock.advance(1);
  spans.leave(first, DROPPED);
  assert.deepEqual(told(spans), ["first<: 0-3", "outer<first: 0-1", "second<first: 1-2"]);
});

test("background work after the answer has no spans", () => {
  const clock = new FakeClock();
  const spans = new QuerySpans(clock, true);
  const cache = spans.enter("cache");
  const forward = spans.enter("forward");
  clock.advance(2);
  spans.end();
  clock.advance(50);
  spans.leave(forward, DROPPED);
  spans.leave(cache, DROPPED);
  spans.leave(spans.enter("forward"), DROPPED);
  spans.exchanged({ address: "192.0.2.1", port: 53, protocol: "udp" }, 2, 11, undefined);
  assert.deepEqual(told(spans), ["cache<: 0-2", "forward<cache: 0-2"]);
});

test("a looping query has at most a hundred spans", () => {
  const spans = new QuerySpans(new FakeClock(), true);
  for (let round = 0; round < 500; round++) spans.enter("rewrite");
  spans.end();
  assert.equal(spans.spans.length, 100);
});
