/** Findings on whether the server can do its job come first, and nothing is concluded from data that is missing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { NowView, QueryRow, TroubleRow } from "../api-types.ts";
import type { Capture, CapturedServer, FailedName } from "./capture.ts";
import { type Diagnosis, diagnose } from "./diagnose.ts";
import { TrafficCounter } from "./traffic-counter.ts";

const CPU = { periods: 0, throttledPeriods: 0, throttled: 0, pressure: 0 };
const MIB = 2 ** 20;

interface Changes {
  readonly now?: Partial<NowView>;
  readonly cpu?: Partial<typeof CPU>;
  readonly finished?: number;
  readonly refused?: CapturedServer["configuration"]["refused"];
}

function facts({ now = {}, cpu = {}, finished = 10_000, refused = null }: Changes = {}): CapturedServer {
  const cluster = {
    domain: "cluster.local",
    awaited: [],
    services: 2,
    families: ["IPv4"],
    age: 1,
    state: [],
  };
  return {
    now: {
      ...{ time: 0, version: "0.1.0", hostname: "coredns-0", startedAt: 0, threads: 1, rate: 10 },
      minute: { queries: 0, rcodes: {}, types: {}, hitRatio: null, p50: null, p90: null, p99: null },
      ...{ upstreams: [], clusters: [cluster], memory: { resident: 60 * MIB, heap: 0, limit: null } },
      ...{ pauses: { p99: 0, longest: 0 }, shed: 0, sampling: { interval: 1, missed: 0 } },
      ...{ notReady: [], troubles: [], servedStale: 0, ...now },
    },
    machine: {
      finished,
      memory: { resident: 60 * MIB, peak: 80 * MIB, limit: 170 * MIB },
      ...{ cpu: { ...CPU, ...cpu }, udp: null, conntrack: null },
    },
    caches: [],
    configuration: { file: "/etc/coredns/Corefile", text: "", blocks: [], refused },
  };
}

function seen(
  first: Changes,
  last: Changes,
  part: { readonly rows?: readonly QueryRow[]; readonly failures?: readonly FailedName[] } = {},
): Diagnosis {
  const traffic = new TrafficCounter();
  for (const row of part.rows ?? []) traffic.add(row);
  const { failures = [] } = part;
  const capture: Capture = {
    ...{ traffic, first: facts(first), last: facts(last) },
    ...{ pod: undefined, impossible: undefined, failures },
  };
  return diagnose(capture, { server: "-server 127.0.0.1:8184", doctor: "" });
}

function rows(count: number, part: Partial<QueryRow>): QueryRow[] {
  return Array.from({ length: count }, (_, n) => ({
    ...{ time: 10 * n, name: "web.shop.svc.cluster.local.", type: "A", rcode: "NOERROR", client: "10.1.0.1" },
    ...{ duration: 0.1, plugin: "cache", transport: "udp", port: 4_000, id: n, listener: "dns://:53" },
    ...{ answers: 1, size: 80, weight: 1 },
    ...part,
  }));
}

const trouble = (plugin: string, subject: string, reason: string): TroubleRow => ({
  ...{ plugin, block: ".:53", subject, reason },
});

const FORBIDDEN =
  'not listed yet: no right to list endpointslices (403 Forbidden): the ClusterRole of this server needs the verbs list and watch on resource "endpointslices" of API group "discovery.k8s.io": ' +
  'endpointslices.discovery.k8s.io is forbidden: User "system:serviceaccount:kube-system:coredns" cannot list resource';

test("a cluster that may not be listed is the first finding, with the missing right and the commands that give it", () => {
  const awaited = ["endpoints (no right)"];
  const [cluster] = facts().now.clusters;
  assert.ok(cluster);
  const now = {
    notReady: ["kubernetes"],
    troubles: [trouble("kubernetes", "endpoints", FORBIDDEN)],
    clusters: [{ ...cluster, awaited }],
  };
  const aaaa = rows(90, { type: "AAAA", answers: 0 });
  const { findings, notExamined } = seen({ now }, { now }, { rows: aaaa });
  assert.deepEqual(
    findings.map(({ code }) => code),
    ["not-ready", "cluster-data"],
  );
  assert.match(findings[0]?.title ?? "", /^the server is not ready: kubernetes/);
  assert.equal(findings[0]?.causes[0]?.figure, FORBIDDEN);
  assert.equal(
    findings[1]?.remedies[0]?.patch,
    "kubectl create clusterrole coredns-endpointslices --verb=list,watch --resource=endpointslices.discovery.k8s.io\n" +
      "kubectl create clusterrolebinding coredns-endpointslices --clusterrole=coredns-endpointslices --serviceaccount=kube-system:coredns",
  );
  // No conclusion from what was not listed.
  assert.match(notExamined.find(({ code }) => code === "aaaa")?.reason ?? "", /it is not listed yet$/);
});

test("a cluster that is listed and whose API is gone has old data", () => {
  const now = { troubles: [trouble("kubernetes", "services", "the data is 4m0s old: connection refused")] };
  const [finding, ...others] = seen({}, { now }).findings;
  assert.deepEqual([finding?.code, others], ["cluster-data", []]);
  assert.equal(finding?.title, "the cluster's data is old: services");
});

test("failures are counted by plugin, with the reason that the server gives when it is asked again", () => {
  const failing = rows(20, { rcode: "SERVFAIL", plugin: "forward", name: "www.example.org.", answers: 0 });
  const reason = "read udp 127.0.0.1:5->192.0.2.1:53: i/o timeout";
  const failures = [{ name: "www.example.org.", type: "A", plugin: "forward", rcode: "SERVFAIL", reason }];
  const [finding] = seen({}, {}, { rows: [...rows(60, {}), ...failing], failures }).findings;
  assert.equal(finding?.code, "servfail");
  assert.equal(finding?.title, "20 of 80 queries (25 %) failed with SERVFAIL: forward 100 %");
  assert.deepEqual(finding?.causes[0], { who: "forward", figure: `20 queries: ${reason}` });
  assert.equal(finding?.remedies[0]?.patch, "portolan explain www.example.org. A -server 127.0.0.1:8184");
});

test("a few failures among few queries are a finding", () => {
  const { findings } = seen({}, {}, { rows: rows(3, { rcode: "SERVFAIL", plugin: "secondary" }) });
  assert.deepEqual(
    findings.map(({ code }) => code),
    ["servfail"],
  );
});

test("a refused Corefile", () => {
  const diagnostics = [
    {
      code: "X",
      severity: "error",
      message: 'unknown directive "cach"',
      file: "Corefile",
      line: 3,
      column: 5,
    },
  ];
  const [finding, ...others] = seen({}, { refused: { at: 0, reason: "…", diagnostics } }).findings;
  assert.deepEqual([finding?.code, others], ["refused-corefile", []]);
  assert.deepEqual(finding?.causes, [{ who: "Corefile:3:5", figure: 'unknown directive "cach"' }]);
  assert.equal(finding?.remedies[0]?.patch, "portolan check /etc/coredns/Corefile");
});

test("a zone that was never transferred", () => {
  const now = { troubles: [trouble("secondary", "example.net.", "not transferred yet: connection refused")] };
  const [finding, ...others] = seen({}, { now }).findings;
  assert.deepEqual([finding?.code, others], ["zone-data", []]);
  assert.deepEqual(finding?.causes, [
    { who: "secondary example.net.", figure: "not transferred yet: connection refused" },
  ]);
});

test("clients above a limit", () => {
  const now = {
    troubles: [
      trouble("limit", "10.1.2.3", "exceeds the limit 'all': 900 queries in a minute"),
      trouble("limit", "10.1.2.3", "exceeds the limit 'nxdomain': 90 queries in a minute"),
    ],
  };
  const [finding, ...others] = seen({}, { now }).findings;
  assert.deepEqual([finding?.code, others], ["limited-clients", []]);
  assert.equal(finding?.title, "1 client above a limit: 10.1.2.3");
  assert.deepEqual(finding?.causes[0], {
    who: "limit 10.1.2.3",
    figure: "exceeds the limit 'all': 900 queries in a minute",
  });
});

test("stale answers, while it ran or since the start", () => {
  for (const [first, last, title] of [
    [{}, { now: { servedStale: 300 }, finished: 10_300 }, /^300 queries \(100 %\) .* while this ran$/],
    [
      { now: { servedStale: 300 } },
      { now: { servedStale: 300 } },
      /^300 queries \(3.0 %\) .* since the start$/,
    ],
  ] as const) {
    const [finding, ...others] = seen(first, last).findings;
    assert.deepEqual([finding?.code, others], ["stale-answers", []]);
    assert.match(finding?.title ?? "", title);
  }
  assert.deepEqual(seen({ now: { servedStale: 3 } }, { now: { servedStale: 3 } }).findings, []);
});

test("stalls name the CPU limit, and the machine", () => {
  const quota = { periods: 100, throttledPeriods: 75, throttled: 5_000 };
  for (const [first, last, title, causes] of [
    [{}, { cpu: quota }, /^the CPU limit stops the server: .* 75 % of its periods$/, 2],
    [
      {},
      { cpu: { pressure: 60 }, now: { pauses: { p99: 150, longest: 400 } } },
      /^the server stood still for up to 400 ms, on a machine that is short of CPU$/,
      2,
    ],
    [{}, { now: { pauses: { p99: 10, longest: 2_000 } } }, /^the server stood still for up to 2000 ms$/, 1],
  ] as const) {
    const [finding, ...others] = seen(first, last).findings;
    assert.deepEqual([finding?.code, others], ["stalls", []]);
    assert.match(finding?.title ?? "", title);
    assert.equal(finding?.causes.length, causes);
  }
  // It was throttled once, and is not any more.
  const now = { periods: 200, throttledPeriods: 75, throttled: 5_000 };
  assert.deepEqual(seen({ cpu: quota }, { cpu: now }).findings, []);
});

test("captures of older servers are judged as far as they go", () => {
  const { now, machine, configuration, ...others } = facts();
  const { notReady: _ready, troubles: _troubles, servedStale: _stale, ...oldNow } = now;
  const { cpu: _cpu, ...oldMachine } = machine;
  const { refused: _refused, ...oldConfiguration } = configuration;
  const old = { ...others, now: oldNow, machine: oldMachine, configuration: oldConfiguration };
  const capture = { traffic: new TrafficCounter(), first: undefined, last: old };
  const { findings, notExamined } = diagnose({
    ...{ ...capture, pod: undefined, impossible: undefined, failures: [] },
  });
  assert.deepEqual(findings, []);
  const missing = notExamined
    .filter(({ reason }) => reason.includes("older version"))
    .map(({ code }) => code);
  assert.deepEqual(missing, [
    "not-ready",
    "cluster-data",
    "refused-corefile",
    "zone-data",
    "limited-clients",
    "stale-answers",
  ]);
});
