import assert from "node:assert/strict";
import { test } from "node:test";
import { MetricsRegistry } from "../lib/metrics/metrics.ts";
import { shedQueries, upstreamRows } from "./metric-facts.ts";

function makeMetrics() {
  const metrics = new MetricsRegistry();
  const durations = metrics.histogram({
    name: "coredns_proxy_request_duration_seconds",
    help: "h",
    labels: ["proxy_name", "to", "rcode"],
    buckets: [0.001, 0.01, 0.1],
  });
  const checks = metrics.counter({
    name: "coredns_proxy_healthcheck_failures_total",
    help: "h",
    labels: ["proxy_name", "to"],
  });
  const discarded = metrics.counter({
    name: "portolan_proxy_discarded_messages_total",
    help: "h",
    labels: ["proxy_name", "to", "proto", "reason"],
  });
  return { metrics, durations, checks, discarded };
}

test("sums each upstream over rcodes, and tells what went wrong with it", () => {
  const { metrics, durations, checks, discarded } = makeMetrics();
  const [one, other] = ["10.0.0.53:53", "10.0.0.54:53"];
  for (let count = 0; count < 98; count++) durations.slot("forward", one, "NOERROR").observe(0.002);
  durations.slot("forward", one, "NXDOMAIN").observe(0.002);
  durations.slot("forward", one, "SERVFAIL").observe(0.05);
  checks.slot("forward", other).increment();
  discarded.slot("forward", one, "udp", "id").increment();
  discarded.slot("forward", one, "tcp", "question").increment();
  assert.deepEqual(upstreamRows(metrics.snapshot()), [
    {
      ...{ plugin: "forward", address: one, exchanges: 100, errors: 1, mean: 2.48, p99: 10 },
      ...{ failures: { SERVFAIL: 1 }, failedChecks: 0, discarded: 2 },
    },
    // One that has never answered is there as well.
    {
      ...{ plugin: "forward", address: other, exchanges: 0, errors: 0, mean: null, p99: null },
      ...{ failures: {}, failedChecks: 1, discarded: 0 },
    },
  ]);
});

test("a server without upstreams has none, and has shed nothing", () => {
  assert.deepEqual(upstreamRows(new MetricsRegistry().snapshot()), []);
  assert.equal(shedQueries(new MetricsRegistry().snapshot()), 0);
});
