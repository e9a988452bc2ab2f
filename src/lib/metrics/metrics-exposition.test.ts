import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";
import { SIZE_BUCKETS } from "./metric-families.ts";
import { MetricsRegistry } from "./metrics.ts";

describe("MetricsRegistry.expose", () => {
  it("prints the text format of Prometheus", async () => {
    const { contentType, body, errors } = await sampleRegistry().expose();
    assert.equal(contentType, "text/plain; version=0.0.4; charset=utf-8");
    assert.deepEqual(errors, []);
    assert.equal(body, TEXT);
  });

  it("prints OpenMetrics, and Prometheus' format unharmed after it", async () => {
    const registry = sampleRegistry();
    const [openMetrics, text] = await Promise.all([registry.expose("openmetrics"), registry.expose()]);
    assert.equal(openMetrics.contentType, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert.match(openMetrics.body, /^# TYPE coredns_dns_requests counter$/m);
    assert.match(openMetrics.body, /^coredns_dns_requests_total\{server="dns:\/\/:53",zone="\."\} 2$/m);
    assert.match(openMetrics.body, /\n# EOF\n$/);
    assert.equal(text.body, TEXT);
  });

  it("shows what changed since the last scrape, also families made meanwhile", async () => {
    const registry = new MetricsRegistry({ processMetrics: false });
    const slot = registry.counter({ name: "c_total", help: "x" }).slot();
    assert.match((await registry.expose()).body, /^c_total 0$/m);
    slot.increment();
    registry.gauge({ name: "g", help: "x" }).slot().set(-1.5);
    const { body } = await registry.expose();
    assert.match(body, /^c_total 1$/m);
    assert.match(body, /^g -1.5$/m);
  });

  it("calls collectors first, until they are taken off; one that throws costs only itself", async () => {
    const registry = new MetricsRegistry({ processMetrics: false });
    const slot = registry.gauge({ name: "age_seconds", help: "x" }).slot();
    const broken = new Error("broken");
    const takeOff = registry.onCollect(() => {
      throw broken;
    });
    registry.onCollect(() => slot.add(1));
    const first = await registry.expose();
    assert.deepEqual(first.errors, [broken]);
    assert.match(first.body, /^age_seconds 1$/m);
    takeOff();
    assert.deepEqual((await registry.expose()).errors, []);
    assert.equal(slot.value, 2);
  });

  it("adds the metrics of the process, and says who took one of their names", async () => {
    const registry = new MetricsRegistry();
    registry.gauge({ name: "process_cpu_seconds_total", help: "x" });
    const { body, errors } = await registry.expose();
    assert.match(body, /^process_resident_memory_bytes \d+$/m);
    assert.match(body, /^nodejs_version_info\{/m);
    assert.equal(errors.length, 1);
    assert.match(String(errors[0]), /process_cpu_seconds_total/);
    const again = await registry.expose("openmetrics");
    assert.match(again.body, /^process_cpu_seconds_total \d/m);
  });

  it("escapes label values", async () => {
    const registry = new MetricsRegistry({ processMetrics: false });
    registry
      .counter({ name: "c_total", help: "line\nbreak", labels: ["l"] })
      .slot('a"b\\c\nd')
      .increment();
    assert.equal(
      (await registry.expose()).body,
      '# HELP c_total line\\nbreak\n# TYPE c_total counter\nc_total{l="a\\"b\\\\c\\nd"} 1\n',
    );
  });

  it("passes promtool", async (context) => {
    if (spawnSync("promtool", ["--version"]).error !== undefined) {
      context.skip("promtool (Debian package prometheus) is not installed");
      return;
    }
    const { body } = await sampleRegistry().expose();
    const check = spawnSync("promtool", ["check", "metrics"], { input: body, encoding: "utf8" });
    assert.equal(check.status, 0, check.stdout + check.stderr);
  });
});

function sampleRegistry(): MetricsRegistry {
  const registry = new MetricsRegistry({ processMetrics: false });
  const requests = registry.counter({
    name: "coredns_dns_requests_total",
    help: "Counter of DNS requests.",
    labels: ["server", "zone"],
  });
  requests.slot("dns://:53", ".").add(2);
  requests.slot("dns://:53", "cluster.local.").increment();
  registry.gauge({ name: "coredns_cache_entries", help: "Elements in the cache." }).slot().set(17);
  const sizes = registry.histogram({
    name: "coredns_dns_request_size_bytes",
    help: "Size of requests.",
    labels: ["proto"],
    buckets: SIZE_BUCKETS.slice(0, 3),
  });
  for (const size of [29, 100, 101, 5000]) sizes.slot("udp").observe(size);
  return registry;
}

const TEXT = `# HELP coredns_dns_requests_total Counter of DNS requests.
# TYPE coredns_dns_requests_total counter
coredns_dns_requests_total{server="dns://:53",zone="."} 2
coredns_dns_requests_total{server="dns://:53",zone="cluster.local."} 1

# HELP coredns_cache_entries Elements in the cache.
# TYPE coredns_cache_entries gauge
coredns_cache_entries 17

# HELP coredns_dns_request_size_bytes Size of requests.
# TYPE coredns_dns_request_size_bytes histogram
coredns_dns_request_size_bytes_bucket{proto="udp",le="0"} 0
coredns_dns_request_size_bytes_bucket{proto="udp",le="100"} 2
coredns_dns_request_size_bytes_bucket{proto="udp",le="200"} 3
coredns_dns_request_size_bytes_bucket{proto="udp",le="+Inf"} 4
coredns_dns_request_size_bytes_sum{proto="udp"} 5230
coredns_dns_request_size_bytes_count{proto="udp"} 4
`;
