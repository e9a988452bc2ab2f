import assert from "node:assert/strict";
import { test } from "node:test";
import { mergeSnapshots } from "../../lib/metrics/metric-snapshot.ts";
import { records } from "../../plugin/testing.ts";
import { makeCache } from "./fixtures/make-cache.ts";

test("answers that threads share are counted once, whichever thread had the queries", () => {
  const threads = [makeCache(), makeCache()];
  const [leader, follower] = threads;
  assert.ok(leader !== undefined && follower !== undefined);
  follower.handler.join(leader.handler.share());
  const entries = (): string[] => {
    const snapshots = threads.map(({ running }) => running.metrics.snapshot());
    const gauge = mergeSnapshots(snapshots).find(({ name }) => name === "coredns_cache_entries");
    return (gauge?.series ?? []).map(({ labelValues, numbers }) => `${labelValues[1]} ${numbers.join()}`);
  };
  const ask = ({ handler, running }: typeof leader): void =>
    void handler.handle(running.query({ name: "www.example." }), (query) =>
      query.reply({ answer: records("www.example. 300 IN A 192.0.2.1") }),
    );
  assert.deepEqual(entries(), []);
  ask(follower);
  assert.deepEqual(entries(), ["success 1", "denial 0"]);
  ask(leader);
  assert.deepEqual(entries(), ["success 1", "denial 0"]);
});
