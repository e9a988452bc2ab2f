/** Each rule over captures that are ill in one way alone. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { QueryRow, UpstreamRow } from "../api-types.ts";
import type { Capture, CapturedServer, PodTemplate } from "./capture.ts";
import { diagnose } from "./diagnose.ts";
import type { Finding } from "./finding.ts";
import { TrafficCounter } from "./traffic-counter.ts";
import { dnsConfigPatch, workloadName } from "./workload-names.ts";

function row(part: Partial<QueryRow> & { readonly name: string }): QueryRow {
  const denied = part.rcode === "NXDOMAIN" || part.rcode === "SERVFAIL";
  return {
    ...{ time: 0, type: "A", rcode: "NOERROR", client: "10.1.0.1", workload: "shop/web-6d4cf56db6-x2x5c" },
    ...{ duration: 0.1, plugin: "cache", transport: "udp", port: 4_000, id: 0, listener: "dns://:53" },
    ...{ answers: denied ? 0 : 1, size: 80, weight: 1 },
    ...part,
  };
}

let lastId = 0;

/** So many of each, 10 ms apart, with ids of their own. */
function rows(
  count: number,
  ...parts: readonly (Partial<QueryRow> & { readonly name: string })[]
): QueryRow[] {
  return Array.from({ length: count * parts.length }, (_, n) =>
    row({ name: "", ...parts[n % parts.length], id: ++lastId, time: 10 * n }),
  );
}

const GOOD = rows(60, { name: "web.shop.svc.cluster.local." }, { name: "api.example.com." });

const UPSTREAM: UpstreamRow = {
  ...{ plugin: "forward", address: "10.0.0.53:53", exchanges: 100, errors: 0, mean: 2, p99: 8 },
  ...{ failedChecks: 0, discarded: 0 },
};

interface Changes {
  readonly upstreams?: readonly UpstreamRow[];
  readonly families?: readonly string[];
  readonly machine?: Partial<CapturedServer["machine"]>;
  readonly caches?: CapturedServer["caches"];
  readonly text?: string;
  readonly pauses?: CapturedServer["now"]["pauses"];
  readonly now?: Partial<CapturedServer["now"]>;
  readonly refused?: CapturedServer["configuration"]["refused"];
}

function facts({
  upstreams = [UPSTREAM],
  families = ["IPv4"],
  machine,
  caches = [],
  text,
  pauses = { p99: 0, longest: 0 },
  now,
  refused = null,
}: Changes = {}): CapturedServer {
  const mebibytes = (count: number): number => count * 2 ** 20;
  const cluster = { domain: "cluster.local", awaited: [], services: 2, families, age: 1, state: [] };
  return {
    now: {
      ...{ time: 0, version: "0.1.0", hostname: "coredns-0", startedAt: 0, threads: 1, rate: 10 },
      minute: { queries: 0, rcodes: {}, types: {}, hitRatio: null, p50: null, p90: null, p99: null },
      ...{ upstreams, clusters: [cluster], memory: { resident: mebibytes(60), heap: 0, limit: null } },
      ...{ pauses, shed: 0, sampling: { interval: 1, missed: 0 } },
      ...{ notReady: [], troubles: [], servedStale: 0, ...now },
    },
    machine: {
      finished: 10_000,
      memory: { resident: mebibytes(60), peak: mebibytes(80), limit: mebibytes(170) },
      udp: { received: 10_000, receiveBufferErrors: 0, sendBufferErrors: 0, socketDrops: 0 },
      conntrack: { entries: 10, most: 1_000, dropped: 5, droppedEarly: 5, notInserted: 5 },
      ...machine,
    },
    caches,
    configuration: {
      file: "Corefile",
      text: text ?? ".:53 {\n health {\n  lameduck 10s\n }\n ready\n}\n",
      refused,
      blocks: [],
    },
  };
}

const POD: PodTemplate = {
  ...{ owner: "deployment/coredns", namespace: "kube-system", gracePeriod: 30, preStopSleep: 0 },
  ...{ container: "coredns", memoryLimit: undefined },
  readiness: { path: "/ready", period: 2, failures: 2, timeout: 5 },
  liveness: { path: "/health", period: 10, failures: 5, timeout: 5 },
};

type Parts = Partial<Omit<Capture, "traffic">> & { readonly rows?: readonly QueryRow[] };

function capture({ rows: queries = GOOD, ...part }: Parts = {}): Capture {
  const traffic = new TrafficCounter();
  for (const each of queries) traffic.add(each);
  return { traffic, first: facts(), last: facts(), pod: POD, impossible: undefined, failures: [], ...part };
}

function findingsIn(part: Parts): readonly Finding[] {
  return diagnose(capture(part)).findings;
}

/** The one finding there is. */
function onlyFinding(part: Parts): Finding {
  const findings = findingsIn(part);
  assert.equal(findings.length, 1, findings.map(({ title }) => title).join("\n"));
  const [finding] = findings;
  assert.ok(finding);
  return finding;
}

test("nothing is wrong with what is well, and all of it is examined", () => {
  const { findings, notExamined, observed } = diagnose(capture());
  assert.deepEqual([findings, notExamined], [[], []]);
  assert.equal(observed.queries, 120);
});

test("few queries say nothing", () => {
  const { findings, notExamined } = diagnose(
    capture({ rows: rows(10, { name: "no.where.", rcode: "NXDOMAIN" }) }),
  );
  assert.deepEqual(findings, []);
  assert.deepEqual(
    notExamined.map(({ code }) => code),
    ["search-path", "aaaa", "absent-names", "retries", "short-ttls"],
  );
});

describe("the search path", () => {
  const domains = ["shop.svc.cluster.local.", "svc.cluster.local.", "cluster.local."];
  const walk = (name: string, found: string): (Partial<QueryRow> & { readonly name: string })[] => [
    ...domains.map((domain) => ({ name: `${name}.${domain}`, rcode: "NXDOMAIN" })),
    { name: found },
  ];

  for (const [title, parts] of [
    ["a name of the world outside", walk("api.example.com", "api.example.com.")],
    ["one of two labels", walk("example.com", "example.com.")],
    ["a whole name without its dot", walk("web.shop.svc.cluster.local", "web.shop.svc.cluster.local.")],
    ["a search domain of the node", [{ name: "api.example.com.corp.example.", rcode: "NXDOMAIN" }]],
  ] as const) {
    test(title, () => {
      const { code, remedies } = onlyFinding({ rows: [...GOOD, ...rows(60, ...parts)] });
      assert.equal(code, "search-path");
      assert.match(remedies[0]?.patch ?? "", /"ndots","value":"1"/);
    });
  }

  test("short names of Services elsewhere want ndots:2", () => {
    const short = rows(
      60,
      { name: "redis.data.shop.svc.cluster.local.", rcode: "NXDOMAIN" },
      { name: "redis.data.svc.cluster.local." },
    );
    const { remedies } = onlyFinding({ rows: [...GOOD, ...short] });
    assert.match(remedies[0]?.patch ?? "", /"ndots","value":"2"/);
  });

  test("a client whose pod is not known is no namespace", () => {
    const wasted = rows(60, ...walk("api.example.com", "api.example.com."));
    const nameless = wasted.map(({ workload: _, ...each }) => ({ ...each, client: "10.0.0.7" }));
    const { causes, remedies } = onlyFinding({ rows: [...GOOD, ...nameless] });
    assert.match(
      `${causes[0]?.who} ${causes[0]?.figure}`,
      /^10\.0\.0\.7 180 of 240 queries \(75 %\) of the client,/,
    );
    assert.match(remedies[0]?.text ?? "", /^make what runs at 10\.0\.0\.7 try/);
  });

  test("names that a shell would run are quoted in what is to be copied", () => {
    const absent = rows(30, { name: "$(reboot).example.com.", rcode: "NXDOMAIN" });
    const { code, remedies } = onlyFinding({ rows: [...GOOD, ...absent] });
    assert.equal(code, "absent-names");
    assert.equal(remedies[0]?.patch, "portolan explain '$(reboot).example.com.' -server 127.0.0.1:8184");
  });

  test("a Service that is not there is no search path", () => {
    const absent = rows(
      60,
      ...["shop.svc.", "svc.", ""].map((each) => ({ name: `bd.${each}cluster.local.`, rcode: "NXDOMAIN" })),
      {
        name: "bd.",
        rcode: "NXDOMAIN",
      },
    );
    const { code, causes } = onlyFinding({ rows: [...GOOD, ...absent] });
    assert.equal(code, "absent-names");
    assert.match(causes[0]?.who ?? "", /^bd\.shop\.svc\.cluster\.local\.$/);
    assert.equal(causes.length, 1);
  });
});

test("AAAA is noise where there is no IPv6, and not elsewhere", () => {
  const asked = [...GOOD, ...rows(90, { name: "web.shop.svc.cluster.local.", type: "AAAA", answers: 0 })];
  assert.equal(onlyFinding({ rows: asked }).code, "aaaa");
  const dual = facts({ families: ["IPv4", "IPv6"] });
  assert.deepEqual(findingsIn({ rows: asked, first: dual, last: dual }), []);
  const answered = asked.map((each) => (each.type === "AAAA" ? { ...each, plugin: "template" } : each));
  assert.deepEqual(findingsIn({ rows: answered }), []);
});

describe("retries", () => {
  const twice = (part: Partial<QueryRow>): QueryRow[] =>
    rows(30, { name: "web.shop.svc.cluster.local.", port: 7, ...part }).flatMap((each) => [each, each]);

  test("of what had been answered: replies are lost", () => {
    const { code, figures, remedies } = onlyFinding({ rows: [...GOOD, ...twice({})] });
    assert.deepEqual([code, figures.retries, figures.repliesLost], ["retries", 30, 30]);
    assert.match(remedies[0]?.text ?? "", /node-cache/);
  });

  test("of what failed: something behind is ill", () => {
    for (const [plugin, remedy] of [
      ["forward", /serve stale answers until then/],
      ["kubernetes", /^remove the cause of the failures: see 'servfail'$/],
    ] as const) {
      const failing = twice({ rcode: "SERVFAIL", plugin });
      const [first, second, ...others] = findingsIn({ rows: [...GOOD, ...failing] });
      assert.deepEqual([first?.code, second?.code, others], ["servfail", "retries", []]);
      assert.equal(second?.figures.repliesLost, 0);
      assert.match(second?.remedies[0]?.text ?? "", remedy);
    }
  });

  test("are not seen where only some queries are written", () => {
    const sampled = [...GOOD, ...twice({})].map((each) => ({ ...each, weight: 4 }));
    const { findings, notExamined } = diagnose(capture({ rows: sampled }));
    assert.deepEqual(findings, []);
    assert.match(notExamined.find(({ code }) => code === "retries")?.reason ?? "", /are sampled/);
  });
});

for (const [title, code, before, after] of [
  ["slow", "slow-upstream", {}, { exchanges: 200, mean: 101 }],
  ["failing", "failing-upstream", {}, { exchanges: 200, errors: 50 }],
  ["without an answer to health checks", "failing-upstream", {}, { failedChecks: 3 }],
  ["forging", "lying-upstream", {}, { discarded: 9 }],
] as const) {
  test(`an upstream that is ${title}`, () => {
    const first = facts({ upstreams: [{ ...UPSTREAM, ...before }] });
    const last = facts({ upstreams: [{ ...UPSTREAM, ...after }] });
    const finding = onlyFinding({ first, last });
    assert.equal(finding.code, code);
    assert.match(finding.causes[0]?.who ?? "", /^forward to 10\.0\.0\.53:53$/);
    // What was and is no more is no finding.
    const now = facts({ upstreams: [{ ...UPSTREAM, ...after, exchanges: 10_000, mean: 2 }] });
    assert.deepEqual(findingsIn({ first: last, last: now }), []);
  });
}

test("an upstream far slower than its neighbour", () => {
  const upstreams = [UPSTREAM, { ...UPSTREAM, address: "10.0.0.54:53", mean: 30 }];
  const finding = onlyFinding({ first: undefined, last: facts({ upstreams }) });
  assert.deepEqual([finding.code, finding.causes[0]?.who], ["slow-upstream", "forward to 10.0.0.54:53"]);
});

describe("an upstream of a server that is late itself", () => {
  const withoutStalls = (findings: readonly Finding[]) => findings.filter(({ code }) => code !== "stalls");
  const seen = (
    exchanges: number,
    mean: number,
    pauses: CapturedServer["now"]["pauses"],
    isFirst = false,
  ) => {
    const before = facts({
      upstreams: [{ ...UPSTREAM, exchanges: 0, mean: null }],
      ...(isFirst && { pauses }),
    });
    const after = facts({ upstreams: [{ ...UPSTREAM, exchanges, mean }], ...(!isFirst && { pauses }) });
    return diagnose(capture({ first: before, last: after }));
  };

  // The first as measured in a control group with a quarter of a core and eight programs that never rest; the upstream was at hand.
  for (const [title, exchanges, mean, pauses] of [
    ["all the time", 37, 127, { p99: 443, longest: 780 }],
    ["once, amid few exchanges", 10, 120, { p99: 13, longest: 310 }],
  ] as const)
    for (const isFirst of [true, false])
      test(`is not judged: ${title}, known ${isFirst ? "before" : "after"}`, () => {
        const { findings, notExamined } = seen(exchanges, mean, pauses, isFirst);
        assert.deepEqual(withoutStalls(findings), []);
        const { reason = "" } = notExamined.find(({ code }) => code === "slow-upstream") ?? {};
        assert.match(reason, new RegExp(`by ${pauses.p99} ms and once by ${pauses.longest} ms`));
      });

  for (const [title, exchanges, mean, pauses] of [
    ["than the server is late", 37, 1_200, { p99: 443, longest: 780 }],
    ["with many exchanges beside one pause", 100, 120, { p99: 13, longest: 310 }],
  ] as const)
    test(`is found where it is slower: ${title}`, () => {
      assert.deepEqual(
        withoutStalls(seen(exchanges, mean, pauses).findings).map(({ code }) => code),
        ["slow-upstream"],
      );
    });

  test("is no finding if it is still fast", () => {
    const { findings, notExamined } = seen(37, 60, { p99: 443, longest: 780 });
    const slow = notExamined.filter(({ code }) => code === "slow-upstream");
    assert.deepEqual([withoutStalls(findings), slow], [[], []]);
  });
});

test("one of a kind is told as one", () => {
  const machine = facts().machine;
  const lostOne = {
    ...machine.udp,
    received: 10_000,
    receiveBufferErrors: 1,
    sendBufferErrors: 0,
    socketDrops: 1,
  };
  const { title, causes } = onlyFinding({ first: facts(), last: facts({ machine: { udp: lostOne } }) });
  assert.equal(title, "1 query was lost in full UDP buffers while this ran");
  assert.match(causes[0]?.figure ?? "", /^1 datagram since/);
  const { notExamined } = diagnose(capture({ rows: rows(1, { name: "web.shop.svc.cluster.local." }) }));
  assert.match(notExamined.find(({ code }) => code === "aaaa")?.reason ?? "", /^1 query is too few: /);
});

test("an answer for what cannot exist", () => {
  const impossible = {
    name: "x.invalid.",
    rcode: "NOERROR",
    answer: ["x.invalid. 60 IN A 192.0.2.1"],
    plugin: "forward",
  };
  assert.equal(onlyFinding({ impossible }).code, "lying-upstream");
  assert.deepEqual(findingsIn({ impossible: { ...impossible, rcode: "NXDOMAIN", answer: [] } }), []);
});

test("TTLs that defeat the cache", () => {
  const short = rows(40, { name: "price.example.com.", plugin: "forward", ttl: 1 });
  assert.equal(onlyFinding({ rows: [...GOOD, ...short] }).code, "short-ttls");
  assert.deepEqual(findingsIn({ rows: [...GOOD, ...short.map((each) => ({ ...each, ttl: 60 }))] }), []);
});

describe("the kernel", () => {
  const udp = { received: 10_000, receiveBufferErrors: 0, sendBufferErrors: 0, socketDrops: 0 };
  const table = { entries: 10, most: 1_000, dropped: 5, droppedEarly: 5, notInserted: 5 };
  for (const [title, code, machine] of [
    ["datagrams lost meanwhile", "udp-drops", { udp: { ...udp, socketDrops: 2 } }],
    ["a table that is nearly full", "conntrack", { conntrack: { ...table, entries: 900 } }],
    ["packets dropped for want of an entry", "conntrack", { conntrack: { ...table, dropped: 7 } }],
    ["a race for an entry", "conntrack", { conntrack: { ...table, notInserted: 9 } }],
  ] as const) {
    test(title, () => {
      assert.equal(onlyFinding({ last: facts({ machine }) }).code, code);
    });
  }

  test("says so where it does not tell", () => {
    const last = facts({ machine: { udp: null, conntrack: null } });
    assert.deepEqual(
      diagnose(capture({ last })).notExamined.map(({ code }) => code),
      ["udp-drops", "conntrack"],
    );
  });
});

test("caches that may grow beyond the limit", () => {
  const caches = [{ zones: ["."], entries: 1, octets: 0, maxOctets: 100 * 2 ** 20 }];
  const { code, title, remedies } = onlyFinding({ last: facts({ caches }) });
  assert.equal(code, "memory");
  assert.match(title, /may need 160 MiB of memory, 94 % of its limit of 170 MiB/);
  assert.match(remedies[0]?.patch ?? "", /"limits":\{"memory":"224Mi"\}/);
});

test("commands name the server's own namespace and workload", () => {
  const caches = [{ zones: ["."], entries: 1, octets: 0, maxOctets: 100 * 2 ** 20 }];
  const known = facts({ caches });
  const last = {
    ...known,
    now: { ...known.now, hostname: "edge-dns-5d78c9869d-7q2xk" },
    machine: { ...known.machine, namespace: "dns-system" },
  };
  const { findings, notExamined } = diagnose(capture({ last, pod: undefined }), {
    server: "-server 127.0.0.1:9000",
    doctor: "-server 127.0.0.1:9000",
  });
  assert.equal(
    notExamined.find(({ code }) => code === "probes")?.reason,
    "the manifest of the server is not known: kubectl -n dns-system get deployment edge-dns -o yaml | portolan doctor -server 127.0.0.1:9000 -manifest -",
  );
  assert.equal(
    findings.find(({ code }) => code === "memory")?.remedies[0]?.patch,
    "kubectl -n dns-system set resources deployment edge-dns --limits=memory=224Mi",
  );
});

describe("probes", () => {
  for (const [title, who, pod] of [
    ["killed in lameduck", "terminationGracePeriodSeconds", { gracePeriod: 12 }],
    ["a preStop that takes lameduck's time", "terminationGracePeriodSeconds", { preStopSleep: 20 }],
    ["no readiness", "readinessProbe", { readiness: undefined }],
    [
      "readiness by /health",
      "readinessProbe",
      { readiness: { path: "/health", period: 2, failures: 2, timeout: 1 } },
    ],
    [
      "readiness too slow",
      "readinessProbe",
      { readiness: { path: "/ready", period: 5, failures: 2, timeout: 1 } },
    ],
    [
      "liveness by /ready",
      "livenessProbe",
      { liveness: { path: "/ready", period: 10, failures: 5, timeout: 1 } },
    ],
    [
      "liveness without patience",
      "livenessProbe",
      { liveness: { path: "/health", period: 1, failures: 3, timeout: 1 } },
    ],
  ] as const) {
    test(title, () => {
      const { code, causes } = onlyFinding({ pod: { ...POD, ...pod } });
      assert.deepEqual([code, causes.map((each) => each.who)], ["probes", [who]]);
    });
  }

  test("no lameduck at all", () => {
    const { remedies } = onlyFinding({ last: facts({ text: ".:53 {\n health\n ready\n}\n" }) });
    assert.match(remedies[0]?.patch ?? "", /^health \{\n {4}lameduck 10s\n\}$/);
  });
});

test("pods tell what makes them by their names", () => {
  for (const [pod, expected] of [
    ["shop/web-6d4cf56db6-x2x5c", "shop deployment web"],
    ["kube-system/kube-proxy-7lkzv", "kube-system daemonset kube-proxy"],
    ["data/redis-0", "data statefulset redis"],
    ["misc/toolbox", "misc pod toolbox"],
    ["a/my-app", "a pod my-app"],
  ] as const) {
    const { namespace, kind, name } = workloadName(pod);
    assert.equal(`${namespace} ${kind} ${name}`, expected);
  }
  assert.equal(
    dnsConfigPatch(workloadName("misc/toolbox"), { name: "ndots", value: "1" }),
    '# in the manifest that makes misc/toolbox:\nspec:\n  dnsConfig:\n    options:\n      - name: ndots\n        value: "1"',
  );
});
