import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ClusterSample } from "../cluster/cluster-results.ts";
import { FULL_SIZE } from "../cluster/cluster-shape.ts";
import { noResults, type Results, type Sample } from "../results.ts";
import { drawChart } from "./chart.ts";
import { writeMarkdown } from "./markdown.ts";
import { spreadText } from "./spread-text.ts";
import { judge } from "./targets.ts";

const latency = { p50: 40, p99: 100, p999: 200, max: 900 };

function sample(round: number, workload: string, server: string, changes: Partial<Sample> = {}): Sample {
  return {
    round,
    workload,
    server,
    queriesPerSecond: 100_000,
    cpuMicroseconds: 4,
    cpuShare: 0.8,
    sent: 1_000_000,
    lost: 0,
    residentMegabytes: 70,
    openLoop: { rate: 50_000, latency, sendDelay: latency, cpuMicroseconds: 5, sent: 500_000, lost: 0 },
    doubts: [],
    ...changes,
  };
}

function results(samples: readonly Sample[]): Results {
  const servers = [...new Set(samples.map(({ server }) => server))];
  const workloads = [...new Set(samples.map(({ workload }) => workload))];
  return {
    startedAt: "2025-01-02T03:04:05.678Z",
    machine: {
      processor: "Processor",
      cores: 2,
      memoryGigabytes: 8,
      kernel: "Linux 6.1",
      node: "24.11.0",
      dnsperf: "2.10.0",
      commit: "0123456789ab",
      program: "built",
      udp: "batched",
    },
    seconds: 10,
    warmUpSeconds: 3,
    rounds: 3,
    servers: servers.map((name) => ({ name, about: `about ${name}`, version: "1.0" })),
    missingServers: [{ name: "dnsmasq", reason: "not installed" }],
    workloads: workloads.map((name) => ({ name, title: `Title of ${name}`, about: `about ${name}` })),
    samples,
    atRest: [{ round: 1, firstAnswer: 250, residentMegabytes: 81 }],
    failures: [{ round: 2, workload: "cached-1k", server: "unbound", reason: "it ended\nand said more" }],
    configurations: [],
  };
}

function target(all: Results, about: string) {
  const found = judge(all).find((result) => result.about === about);
  assert.ok(found !== undefined, about);
  return found;
}

describe("targets", () => {
  test("servers side by side are compared by the median of their turns", () => {
    const pair = (round: number, ratios: readonly number[]) => ({
      round,
      workload: "cached-1k-console",
      beside: "cached-1k",
      ratios,
    });
    const all: Results = {
      ...results([sample(1, "cached-1k-console", "portolan", { cpuMicroseconds: 9 })]),
      pairs: [pair(1, [1.1, 1.012, 0.9]), pair(2, [1.014, 1.03, 1]), pair(3, [1.04])],
    };
    const { reached, met } = target(all, "With the console on: CPU a query, beside our own cached-1k");
    assert.deepEqual(reached, { median: 1.014, min: 1.012, max: 1.04 });
    assert.equal(met, true);
    assert.match(
      writeMarkdown(all),
      /beside another one under `cached-1k`, .*: 1\.014 \(1\.012–1\.040\) × its CPU a\nquery, the median of 7 pairs of turns/,
    );
  });

  test("a server side by side is told from another one under the same workload", () => {
    const pair = (server: string, ratio: number) => ({
      round: 1,
      workload: "cached-1k",
      beside: "cached-1k",
      server,
      ratios: [ratio],
    });
    const all: Results = {
      ...results([sample(1, "cached-1k", "portolan")]),
      pairs: [pair("unbound", 0.9), pair("floor", 1.3)],
    };
    assert.equal(target(all, "CPU a query, cached-1k, beside unbound").reached?.median, 0.9);
    assert.deepEqual(
      [
        target(all, "CPU a query, cached-1k, beside floor").met,
        target(all, "CPU a query, cached-1k, beside unbound").met,
      ],
      [false, true],
    );
    assert.match(writeMarkdown(all), /beside unbound, .*: 0\.900 × .*\n.* 1 pairs of turns/);
  });

  test("ratios are taken within each round, and their median decides", () => {
    // All of the second round is twice as slow: that must not count.
    const all = results([
      ...[4, 8, 4.4].map((cpuMicroseconds, at) =>
        sample(at + 1, "cached-1k", "portolan", { cpuMicroseconds }),
      ),
      ...[4, 8, 4].map((cpuMicroseconds, at) => sample(at + 1, "cached-1k", "dnsmasq", { cpuMicroseconds })),
    ]);
    const { must, reached, met } = target(all, "CPU a query, cached-1k, to dnsmasq");
    assert.equal(must, "≤ 1 ×");
    assert.equal(met, true);
    assert.ok(reached !== undefined);
    assert.deepEqual([reached.min, reached.median], [1, 1]);
    assert.ok(Math.abs(reached.max - 1.1) < 1e-9);
  });

  test("some are lower bounds", () => {
    const all = results([
      sample(1, "tcp-pipelined", "portolan", { queriesPerSecond: 90_000 }),
      sample(1, "tcp-pipelined", "unbound"),
    ]);
    assert.equal(target(all, "Queries/s, tcp-pipelined, to unbound").met, false);
  });

  test("what this run did not measure is neither met nor missed", () => {
    const { reached, met } = target(
      results([sample(1, "cluster", "portolan")]),
      "p99 at half of capacity, cached-1k, to unbound",
    );
    assert.equal(reached, undefined);
    assert.equal(met, undefined);
  });

  test("memory and start are absolute", () => {
    const all = results([]);
    assert.equal(target(all, "Resident memory at rest, quickstart").met, false);
    assert.equal(target(all, "From start to first answer, quickstart").met, true);
  });
});

function clusterSample(scenario: string, changes: Partial<ClusterSample> = {}): ClusterSample {
  return {
    scenario,
    about: `about ${scenario}`,
    ready: 1_900,
    sync: 1_300,
    listMegabytes: 50,
    restMegabytes: 100,
    relist: { took: 900, peakMegabytes: 125, afterMegabytes: 110 },
    reload: {
      beforeMegabytes: 110,
      peakMegabytes: 165,
      afterMegabytes: 112,
      longestWait: 12,
      asked: 2_000,
    },
    latency: { latency: { p50: 800, p99: 4_200, p999: 9_000, max: 9_500 }, events: 300, missed: 2 },
    churn: { rate: 200, events: 4_000, cpuMicroseconds: 310, cpuShare: 0.062 },
    doubts: [],
    ...changes,
  };
}

function withCluster(samples: readonly ClusterSample[]): Results {
  const all = results([]);
  return { ...all, cluster: { startedAt: all.startedAt, machine: all.machine, size: FULL_SIZE, samples } };
}

describe("the live cluster", () => {
  const all = withCluster([
    clusterSample("streamed"),
    clusterSample("paged", { ready: 20_000, churn: undefined, doubts: ["latency: others"] }),
    clusterSample("pods", { restMegabytes: 181, latency: undefined, churn: undefined }),
  ]);

  test("has targets of its own", () => {
    const met = judge(all)
      .filter(({ about }) => about.startsWith("Live cluster"))
      .map(({ reached, met }) => [reached?.median, met]);
    assert.deepEqual(met, [
      [1_900, true],
      [20_000, false],
      [100, true],
      [1.25, true],
      [1.5, false],
      [12, true],
      [4.2, true],
      [4.2, true],
      [81, false],
      [undefined, undefined],
      [undefined, undefined],
    ]);
  });

  test("changes count as many as come first, and queries amid them without what the changes take", () => {
    const load = {
      rate: 200,
      together: 1,
      changes: 7_830,
      seconds: 39,
      allMicroseconds: 260,
      microseconds: 200,
    };
    const turn = (cpuMicroseconds: number) => ({ answered: 10_000, lost: 0, seconds: 5, cpuMicroseconds });
    const { cluster } = all;
    assert.ok(cluster !== undefined);
    const measured: Results = {
      ...all,
      cluster: {
        ...cluster,
        changes: [
          { name: "1,000 Services", services: 1_000, endpoints: 5_000, idleShare: 0.012, loads: [load] },
          { name: "8,000 Services", services: 8_000, endpoints: 150_000, idleShare: 0.03, loads: [load] },
        ],
        // 1,000 changes for 10,000 answers: 20 us an answer.
        queriesAmidChanges: {
          rate: 2_000,
          changeRate: 200,
          changeMicroseconds: 200,
          peace: [turn(10), turn(10), turn(10)],
          amid: [turn(31), turn(30), turn(35)],
        },
        doubts: ["changes, 8,000 Services: others"],
      },
    };
    const reached = judge(measured)
      .filter(({ about }) => about.startsWith("Live cluster: CPU"))
      .map((result) => [result.reached?.median.toFixed(2), result.must, result.met]);
    assert.deepEqual(reached, [
      ["200.00", "≤ 210 µs", true],
      ["1.10", "≤ 1.15 ×", true],
    ]);
    const page = writeMarkdown(measured);
    assert.match(page, /^\| 7,830 at 200\/s, one by one \| 200 \(260\) \| 200 \(260\) \|$/m);
    assert.match(page, /^\| idle, share of a core \| 1\.20 % \| 3\.00 % \|$/m);
    assert.match(page, /^\| ratio \| 3\.10 \(3\.00–3\.50\) × \|$/m);
    assert.match(page, /^\| ratio without .* \(200 µs each\) \| 1\.10 \(1\.00–1\.50\) × \|$/m);
    assert.match(page, /^- changes, 8,000 Services: others$/m);
  });

  test("has a table on the page, a column a scenario", () => {
    const page = writeMarkdown(all);
    assert.match(page, /^8,000 Services, 150,000 endpoints in slices of 100, .* 5,000 nodes/m);
    assert.match(page, /^\| \| `streamed` \| `paged` \| `pods` \|$/m);
    assert.match(page, /^Doubtful:\n\n- paged: latency: others$/m);
    assert.match(page, /^\| resident at rest, MB \| 100 \| 100 \| 181 \|$/m);
    assert.match(page, /^\| peak to rest \| 1\.25 × \| 1\.25 × \| 0\.69 × \|$/m);
    assert.match(page, /^\| peak in a reload to rest \| 1\.50 × \| 1\.50 × \| 1\.50 × \|$/m);
    assert.match(page, /^\| event to changed answer, p99, ms \| 4\.20 \| 4\.20 \| - \|$/m);
    assert.match(page, /^\| events watched for; never seen \| 300; \*\*2\*\* \| .* \| - \|$/m);
    assert.match(page, /^\| core busy \| 6\.2 % at 200 events\/s \| - \| - \|$/m);
    assert.match(
      page,
      /^\| Live cluster: event to answer, p99, with cache \| ≤ 10 ms \| 4\.2 ms \| yes \|$/m,
    );
  });

  test("may be all that was measured, or not measured at all", () => {
    const { machine, startedAt, cluster } = all;
    const page = writeMarkdown({ ...noResults(machine, startedAt), cluster });
    assert.match(page, /^## Live cluster$/m);
    assert.match(page, /cached-1k, beside floor \| ≤ 1\.15 × \| not measured \| - \|/);
    assert.ok(!writeMarkdown(results([])).includes("## Live cluster"));
  });
});

describe("the console's page", () => {
  const loads = (page: number, empty: number) => ({
    page: [page, page + 2, page + 10].map((loaded) => ({ loaded, shown: loaded + 20, live: loaded + 50 })),
    empty: [empty, empty, empty].map((loaded) => ({ loaded, shown: loaded + 5 })),
  });
  const { machine, startedAt } = results([]);
  const measured = (fromOtherSite?: ReturnType<typeof loads>) => ({
    ...noResults(machine, startedAt),
    console: {
      startedAt,
      machine,
      streams: [],
      page: { chromium: "150.0", ...loads(110, 40), ...(fromOtherSite && { fromOtherSite }) },
    },
  });
  const goal = "The console's page, from a tab with another page, to the end of the event load";

  test("is shown from each start, and the one from another page is judged", () => {
    const all = measured(loads(65, 45));
    const rows = writeMarkdown(all).match(/^\| (?:the console|an empty page), .*$/gm);
    assert.deepEqual(rows, [
      "| the console, from a tab with another page | 67 (65–75) | 87 (85–95) | 117 (115–125) |",
      "| an empty page, from a tab with another page | 45 (45–45) | 50 (50–50) | - |",
      "| the console, from an empty tab | 112 (110–120) | 132 (130–140) | 162 (160–170) |",
      "| an empty page, from an empty tab | 40 (40–40) | 45 (45–45) | - |",
    ]);
    const { reached, met } = target(all, goal);
    assert.deepEqual([reached?.median, met], [67, true]);
    assert.equal(target(measured(loads(101, 45)), goal).met, false);
  });

  test("results from before there were two starts are those from an empty tab, and not judged", () => {
    const page = writeMarkdown(measured());
    assert.match(page, /^\| the console, from an empty tab \| 112 /m);
    assert.doesNotMatch(page, /^\| the console, from a tab with/m);
    assert.equal(target(measured(), goal).met, undefined);
  });
});

describe("the page", () => {
  const page = writeMarkdown(
    results([
      ...[1, 2, 3].map((round) =>
        sample(round, "cached-1k", "portolan", { cpuMicroseconds: 4 + round / 10 }),
      ),
      sample(1, "cached-1k", "unbound", { lost: 12, doubts: ["12 of 1000000 lost"] }),
    ]),
  );

  test("has a row for each server, with median and spread", () => {
    assert.match(
      page,
      /^\| portolan \| 100,000 \| 4\.20 \(4\.10–4\.30\) \| 80 % \| 40 \| 100 \| 200 \| 0 \| 70 \|$/m,
    );
  });

  test("shows losses and doubts", () => {
    assert.match(page, /^\| unbound .* \| \*\*12\*\* \| 70 \|$/m);
    assert.match(page, /^- unbound, round 1: 12 of 1000000 lost$/m);
    assert.match(page, /^- unbound, round 2: \*\*failed\*\*: it ended$/m);
    assert.match(page, /without dnsmasq: not installed/);
  });

  test("figures are grouped, and one value needs no spread", () => {
    assert.equal(spreadText({ median: 123_456.4, min: 1, max: 200_000 }, 0), "123,456 (1–200,000)");
    assert.equal(spreadText({ median: 4.711, min: 4.711, max: 4.714 }, 2), "4.71");
    assert.equal(spreadText(undefined, 2), "-");
  });
});

test("the chart has one bar for each server of a workload, and names are escaped", () => {
  const svg = drawChart(results([sample(1, "cached-1k", "portolan"), sample(1, "cached-1k", "a<b")]));
  assert.equal(svg.match(/<rect x=/g)?.length, 2);
  assert.match(svg, />a&lt;b</);
  assert.ok(svg.startsWith("<svg ") && svg.endsWith("</svg>\n"));
});

test("the rates and costs within a limit are ratios of turns, and older results have no costs", () => {
  const step = {
    step: "forwarded",
    ratios: [0.9, 1, 0.95],
    lost: 3,
    peakMegabytes: 126,
    freePeakMegabytes: 122,
  };
  const costly = { ...step, step: "cluster names", costRatios: [1.02, 0.98, 1.1] };
  const { machine, startedAt } = results([]);
  const events = { reclaims: 0, kills: 0, peakMegabytes: 140 };
  const page = writeMarkdown({
    ...results([]),
    limited: {
      startedAt,
      machine,
      seconds: 12,
      sample: { mebibytes: 170, restMegabytes: 90, events, steps: [step, costly] },
    },
  });
  assert.match(page, /^\| forwarded \| 0\.95 \(0\.90–1\.00\) × \| - \| 3 \| 126 \| 122 \|$/m);
  assert.match(page, /^\| cluster names \| 0\.95 .* \| 1\.02 \(0\.98–1\.10\) × \| 3 \| 126 \| 122 \|$/m);
});
