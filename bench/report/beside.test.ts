import assert from "node:assert/strict";
import { test } from "node:test";
import type { BesideResults, BesideSample } from "../cluster/beside-results.ts";
import { THREE_THOUSAND_SERVICES } from "../cluster/cluster-shape.ts";
import { besideSection } from "./beside.ts";

function sample(round: number, server: string, microseconds: number): BesideSample {
  const latency = { p50: 2_000, p99: 5_000, p999: 5_000, max: 5_000 };
  const seen = { latency, events: 100, missed: 0 };
  return {
    ...{ round, server, loadSeconds: 1, idleShare: 0.002, peakMegabytes: 90, residentMegabytes: 60 },
    loads: [{ rate: 200, changes: 6_000, microseconds, allMicroseconds: microseconds + 10 }],
    sliceChanged: seen,
    serviceNew: { ...seen, latency: undefined },
  };
}

const results: BesideResults = {
  startedAt: "2026-01-02T03:04:05.000Z",
  machine: {
    ...{ node: "24.0.0", processor: "a processor", cores: 2, kernel: "6.1", memoryGigabytes: 4 },
    ...{ commit: "0123456789ab", dnsperf: "2.14", program: "built", udp: "batched" },
  },
  size: THREE_THOUSAND_SERVICES,
  samples: [
    sample(1, "portolan", 300),
    sample(1, "coredns", 200),
    sample(2, "portolan", 500),
    sample(2, "coredns", 500),
    sample(3, "portolan", 600),
    sample(3, "coredns", 300),
  ],
  doubts: ["coredns, round 1: other processes used 9 % of a core"],
};

test("servers stand beside each other, with ratios of each round", () => {
  const section = besideSection(results);
  assert.match(section, /^\| \| `portolan` \| `coredns` \| to `coredns` \|$/m);
  assert.match(
    section,
    /^\| CPU a change, µs: 6,000 at 200\/s \| 500 \(300–600\) \| 300 \(200–500\) \| 1\.50 \(1\.00–2\.00\) × \|$/m,
  );
  assert.match(section, /^\| slice changed to answer, p99, ms \| 5\.00 \| 5\.00 \| 1\.00 × \|$/m);
  assert.match(section, /^- coredns, round 1: other processes used 9 % of a core$/m);
});

test("what no answer showed has no figure", () => {
  assert.match(besideSection(results), /^\| new Service to answer, p50, ms \| - \| - \| - \|$/m);
});

test("nothing is said where nothing was measured", () => assert.equal(besideSection(undefined), ""));
