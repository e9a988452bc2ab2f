import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  DURATION_BUCKETS,
  MetricDefinitionError,
  SIZE_BUCKETS,
  SLIM_DURATION_BUCKETS,
} from "./metric-families.ts";
import { MetricsRegistry } from "./metrics.ts";

const requests = { name: "coredns_dns_requests_total", help: "Requests.", labels: ["server", "zone"] };

describe("MetricsRegistry", () => {
  it("gives the same family and the same slot when asked again", () => {
    const registry = new MetricsRegistry();
    const family = registry.counter(requests);
    assert.equal(registry.counter({ ...requests, help: "Other words." }), family);
    assert.equal(family.slot("dns://:53", "."), family.slot("dns://:53", "."));
    assert.notEqual(family.slot("dns://:53", "."), family.slot("dns://:54", "."));
    const histogram = registry.histogram({ name: "seconds", help: "Seconds.", buckets: [1, 2] });
    assert.equal(registry.histogram({ name: "seconds", help: "Seconds.", buckets: [1, 2] }), histogram);
    assert.deepEqual([...registry.families()], [family, histogram]);
  });

  it("refuses one name for two different metrics", () => {
    const registry = new MetricsRegistry();
    registry.counter(requests);
    registry.histogram({ name: "seconds", help: "Seconds.", buckets: [1, 2] });
    assert.throws(() => registry.gauge(requests), {
      name: "MetricDefinitionError",
      metric: "coredns_dns_requests_total",
      message: "metric coredns_dns_requests_total: already exists as a counter, not a gauge",
    });
    assert.throws(() => registry.counter({ ...requests, labels: ["zone", "server"] }), {
      message: "metric coredns_dns_requests_total: already exists with labels server, zone",
    });
    assert.throws(() => registry.histogram({ name: "seconds", help: "Seconds.", buckets: [1, 3] }), {
      message: "metric seconds: already exists with other buckets",
    });
    assert.throws(() => registry.histogram({ name: "seconds", help: "S.", labels: ["a"], buckets: [1, 2] }), {
      message: "metric seconds: already exists with no labels",
    });
  });

  it("refuses names, labels and buckets that Prometheus would refuse", () => {
    const registry = new MetricsRegistry();
    for (const name of ["", "9lives", "with space", "dash-ed", "newline\n"]) {
      assert.throws(() => registry.counter({ name, help: "x" }), MetricDefinitionError, name);
    }
    assert.throws(() => registry.counter({ name: "x", help: "" }), MetricDefinitionError);
    for (const labels of [["__name__"], [""], ["a-b"], ["a:b"], ["a", "a"]]) {
      assert.throws(
        () => registry.counter({ name: "x", help: "x", labels }),
        MetricDefinitionError,
        labels[0],
      );
    }
    for (const buckets of [[1, 1], [2, 1], [Number.NaN], [1, Infinity]]) {
      const definition = { name: "x", help: "x", buckets };
      assert.throws(() => registry.histogram(definition), MetricDefinitionError, String(buckets));
    }
    const definition = { name: "x", help: "x", labels: ["le"], buckets: [1] };
    assert.throws(() => registry.histogram(definition), MetricDefinitionError);
    assert.deepEqual([...registry.families()], []);
  });

  it("shares one slot among the series past the bound, and counts them", () => {
    const registry = new MetricsRegistry({ maxSlotsPerFamily: 2 });
    const family = registry.counter(requests);
    const first = family.slot("a", ".");
    family.slot("b", ".");
    const overflow = family.slot("c", ".");
    assert.equal(family.slot("d", "."), overflow);
    assert.equal(family.slot("a", "."), first);
    overflow.add(5);
    assert.deepEqual(
      [...family.series()].map(({ labelValues, slot }) => [...labelValues, slot.value]),
      [
        ["a", ".", 0],
        ["b", ".", 0],
        ["overflow", "overflow", 5],
      ],
    );
    const refused = registry.counter({
      name: "portolan_metrics_refused_series_total",
      help: "x",
      labels: ["metric"],
    });
    assert.equal(refused.slot("coredns_dns_requests_total").value, 2);

    family.remove("b", ".");
    assert.notEqual(family.slot("c", "."), overflow);
    family.clear();
    assert.deepEqual([...family.series()], []);
  });

  it("does not show a gauge that strangers share", () => {
    const registry = new MetricsRegistry({ maxSlotsPerFamily: 1 });
    const family = registry.gauge({ name: "entries", help: "Entries.", labels: ["zone"] });
    family.slot("a").set(1);
    family.slot("b").set(2);
    assert.deepEqual(
      [...family.series()].map(({ labelValues, slot }) => [labelValues, slot.value]),
      [[["a"], 1]],
    );
  });
});

describe("MetricFamily", () => {
  it("insists on the right number of label values", () => {
    const family = new MetricsRegistry().counter(requests);
    assert.throws(() => family.slot("one"), {
      message: "metric coredns_dns_requests_total: needs 2 label values, not 1",
    });
    assert.throws(() => family.remove("one", "two", "three"), MetricDefinitionError);
  });

  it("never takes two lists of label values for one", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.tuple(fc.string(), fc.string()), { selector: (t) => JSON.stringify(t) }),
        (all) => {
          const family = new MetricsRegistry().counter(requests);
          const slots = new Set(all.map(([server, zone]) => family.slot(server, zone)));
          assert.equal(slots.size, all.length);
        },
      ),
    );
  });

  it("gives a removed series' cells to the next one, and nothing of its count", () => {
    const family = new MetricsRegistry().counter(requests);
    const old = family.slot("a", ".");
    old.add(3);
    assert.equal(family.remove("a", "."), true);
    assert.equal(family.remove("a", "."), false);
    const fresh = family.slot("b", ".");
    assert.equal(fresh.value, 0);
    old.increment();
    assert.deepEqual([old.value, fresh.value], [4, 0]);
    fresh.increment();
    assert.deepEqual([old.value, fresh.value], [4, 1]);
  });

  it("keeps every count apart, whatever is made, written and removed", () => {
    const registry = new MetricsRegistry();
    const counter = registry.counter({ name: "c", help: "x", labels: ["l"] });
    const histogram = registry.histogram({ name: "h", help: "x", labels: ["l"], buckets: SIZE_BUCKETS });
    const expected = new Map<string, number>();
    for (let step = 0; step < 3000; step++) {
      const label = String((step * 7919) % 211);
      if (step % 5 === 4) {
        counter.remove(label);
        histogram.remove(label);
        expected.delete(label);
      } else {
        counter.slot(label).increment();
        histogram.slot(label).observe(step % 70_000);
        expected.set(label, (expected.get(label) ?? 0) + 1);
      }
    }
    assert.deepEqual(new Map([...counter.series()].map((s) => [s.labelValues[0], s.slot.value])), expected);
    assert.deepEqual(new Map([...histogram.series()].map((s) => [s.labelValues[0], s.slot.count])), expected);
  });
});

describe("slots", () => {
  it("count up", () => {
    const slot = new MetricsRegistry().counter({ name: "c", help: "x" }).slot();
    slot.increment();
    slot.add(0.5);
    assert.equal(slot.value, 1.5);
    assert.throws(() => slot.add(-1), RangeError);
    assert.throws(() => slot.add(Number.NaN), RangeError);
    assert.equal(slot.value, 1.5);
  });

  it("go up and down", () => {
    const slot = new MetricsRegistry().gauge({ name: "g", help: "x" }).slot();
    slot.set(5);
    slot.add(-7);
    assert.equal(slot.value, -2);
  });

  it("sort values into buckets whose bounds belong to them", () => {
    const slot = new MetricsRegistry().histogram({ name: "h", help: "x", buckets: [1, 2, 4] }).slot();
    for (const value of [0.5, 1, 1.5, 4, 5, Infinity, Number.NaN]) slot.observe(value);
    assert.deepEqual(
      [0, 1, 2, 3].map((bucket) => slot.cumulativeCount(bucket)),
      [2, 3, 4, 6],
    );
    assert.equal(slot.count, 6);
    assert.equal(slot.sum, Infinity);
  });
});

describe("bucket constants", () => {
  it("are those of CoreDNS", () => {
    assert.equal(DURATION_BUCKETS.length, 16);
    assert.deepEqual(
      [DURATION_BUCKETS[0], DURATION_BUCKETS[1], DURATION_BUCKETS[15]],
      [0.00025, 0.0005, 8.192],
    );
    assert.deepEqual(SLIM_DURATION_BUCKETS, [0.00025, 0.0025, 0.025, 0.25, 2.5]);
    assert.deepEqual([SIZE_BUCKETS.length, SIZE_BUCKETS[5], SIZE_BUCKETS[13]], [14, 511, 64_000]);
  });
});
