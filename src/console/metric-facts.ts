/** Reads upstreams and dropped queries from the metrics of the process. */
import type { MetricSnapshot } from "../lib/metrics/metric-snapshot.ts";
import type { UpstreamRow } from "./api-types.ts";

const GOOD = new Set(["NOERROR", "NXDOMAIN"]);

interface Sums {
  exchanges: number;
  errors: number;
  seconds: number;
  readonly failures: Record<string, number>;
  readonly buckets: number[];
}

export function upstreamRows(metrics: readonly MetricSnapshot[]): UpstreamRow[] {
  const durations = metrics.find(({ name }) => name === "coredns_proxy_request_duration_seconds");
  const checks = metrics.find(({ name }) => name === "coredns_proxy_healthcheck_failures_total");
  const rejected = metrics.find(({ name }) => name === "portolan_proxy_discarded_messages_total");
  const found = new Map<string, Sums>();
  const discarded = new Map<string, number>();
  for (const { labelValues, numbers } of rejected?.series ?? []) {
    const key = labelValues.slice(0, 2).join(" ");
    discarded.set(key, (discarded.get(key) ?? 0) + (numbers[0] ?? 0));
  }
  const failed = new Map<string, number>();
  for (const { labelValues, numbers } of checks?.series ?? [])
    failed.set(labelValues.slice(0, 2).join(" "), numbers[0] ?? 0);
  for (const { labelValues, numbers } of durations?.series ?? []) {
    const key = labelValues.slice(0, 2).join(" ");
    const sums = found.get(key) ?? { exchanges: 0, errors: 0, seconds: 0, failures: {}, buckets: [] };
    found.set(key, sums);
    const counts = numbers.subarray(0, -1);
    for (const [at, count] of counts.entries()) sums.buckets[at] = (sums.buckets[at] ?? 0) + count;
    const exchanges = counts.reduce((sum, count) => sum + count, 0);
    sums.exchanges += exchanges;
    const rcode = labelValues[2] ?? "";
    if (!GOOD.has(rcode) && exchanges > 0) {
      sums.errors += exchanges;
      sums.failures[rcode] = (sums.failures[rcode] ?? 0) + exchanges;
    }
    sums.seconds += numbers.at(-1) ?? 0;
  }
  for (const key of failed.keys())
    if (!found.has(key)) found.set(key, { exchanges: 0, errors: 0, seconds: 0, failures: {}, buckets: [] });
  return Array.from(found, ([key, sums]) => {
    const [plugin = "", address = ""] = key.split(" ");
    return {
      plugin,
      address,
      exchanges: sums.exchanges,
      errors: sums.errors,
      failures: sums.failures,
      mean: sums.exchanges === 0 ? null : Math.round((1e6 * sums.seconds) / sums.exchanges) / 1000,
      p99: bound(sums, durations?.buckets ?? [], 0.99),
      failedChecks: failed.get(key) ?? 0,
      discarded: discarded.get(key) ?? 0,
    };
  });
}

export function shedQueries(metrics: readonly MetricSnapshot[]): number {
  return total(metrics, "portolan_dns_shed_total");
}

export function staleAnswers(metrics: readonly MetricSnapshot[]): number {
  return total(metrics, "coredns_cache_served_stale_total");
}

function total(metrics: readonly MetricSnapshot[], family: string): number {
  const series = metrics.find(({ name }) => name === family)?.series ?? [];
  return series.reduce((sum, { numbers }) => sum + (numbers[0] ?? 0), 0);
}

/** The bound of the bucket that contains the share, in milliseconds. */
function bound({ exchanges, buckets }: Sums, bounds: readonly number[], share: number): number | null {
  if (exchanges === 0) return null;
  let sum = 0;
  for (const [at, count] of buckets.entries()) {
    sum += count;
    if (sum >= share * exchanges) return Math.round((bounds[at] ?? bounds.at(-1) ?? 0) * 1e6) / 1000;
  }
  return null;
}
