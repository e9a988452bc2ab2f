import assert from "node:assert/strict";
import { test } from "node:test";
import { ProcessMetrics } from "./process-metrics.ts";

test("shows the metrics of the process and of Node.js under the names of Prometheus clients", {
  skip: process.platform !== "linux" && "other systems do not give all of them",
}, () => {
  const families = new ProcessMetrics().read();
  assert.deepEqual(
    families.map(({ name, type, labels }) => [type, name, ...labels].join(" ")),
    NAMES.trim().split("\n"),
  );
  const value = (name: string): number =>
    families.find((family) => family.name === name)?.series[0]?.numbers[0] ?? Number.NaN;
  assert.ok(Math.abs(value("process_resident_memory_bytes") / process.memoryUsage.rss() - 1) < 0.5);
  assert.ok(value("process_open_fds") > 2 && value("process_open_fds") < value("process_max_fds"));
  assert.ok(Math.abs(value("process_start_time_seconds") + process.uptime() - Date.now() / 1000) < 10);
});

test("counts a collection of garbage by its kind", async () => {
  const metrics = new ProcessMetrics();
  const count = (): number => {
    const family = metrics.read().find(({ name }) => name === "nodejs_gc_duration_seconds");
    const minor = family?.series.find(({ labelValues }) => labelValues[0] === "minor");
    return minor === undefined ? 0 : minor.numbers.slice(0, -1).reduce((sum, number) => sum + number, 0);
  };
  // Garbage until V8 has collected it, and has said so.
  const deadline = performance.now() + 30_000;
  while (count() === 0 && performance.now() < deadline) {
    for (let round = 0; round < 100; round++) Array.from({ length: 1_000 }, () => ({ round }));
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(count() > 0);
});

const NAMES = `
counter process_cpu_user_seconds_total
counter process_cpu_system_seconds_total
counter process_cpu_seconds_total
gauge process_start_time_seconds
gauge process_resident_memory_bytes
gauge process_virtual_memory_bytes
gauge process_heap_bytes
gauge process_open_fds
gauge process_max_fds
gauge nodejs_eventloop_lag_seconds
gauge nodejs_eventloop_lag_min_seconds
gauge nodejs_eventloop_lag_max_seconds
gauge nodejs_eventloop_lag_mean_seconds
gauge nodejs_eventloop_lag_stddev_seconds
gauge nodejs_eventloop_lag_p50_seconds
gauge nodejs_eventloop_lag_p90_seconds
gauge nodejs_eventloop_lag_p99_seconds
gauge nodejs_active_resources type
gauge nodejs_heap_size_total_bytes
gauge nodejs_heap_size_used_bytes
gauge nodejs_external_memory_bytes
gauge nodejs_heap_space_size_total_bytes space
gauge nodejs_heap_space_size_used_bytes space
gauge nodejs_heap_space_size_available_bytes space
gauge nodejs_version_info version major minor patch
histogram nodejs_gc_duration_seconds kind
`;
