/**
 * What changes in a live cluster shows in the next answers, although the cache keeps answers for half a minute: under the names in the
 * cluster, of addresses, outside of the cluster and in a zone of several clusters.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { rcodeName } from "../../src/dns/numbers.ts";
import { formatRecord } from "../../src/dns/resource-record.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { askOverTcp, OutsideWorld, untilSynced } from "../support/kubernetes-rules.ts";
import { Portolan } from "../support/portolan.ts";

/** Less than the 30 s for which the cache would go on with what it has. */
const PATIENCE_MS = 15_000;

interface Question {
  readonly name: string;
  readonly type: string;
  /** Type and data of the records in the answer section, or the rcode where there are none. */
  readonly before: readonly string[];
  readonly now: readonly string[];
}

interface Change {
  readonly title: string;
  readonly prepare: (api: ApiSimulator) => void;
  readonly change: (api: ApiSimulator) => void;
  readonly questions: readonly Question[];
}

const metadata = (name: string) => ({ name, namespace: "default" });

function putService(api: ApiSimulator, name: string, spec: object, status: object = {}): void {
  api.put("services", { metadata: metadata(name), spec, status });
}

function putSlice(api: ApiSimulator, service: string, endpoints: readonly object[], ports: unknown = null) {
  api.put("endpointslices", {
    metadata: { ...metadata(`${service}-1`), labels: { "kubernetes.io/service-name": service } },
    addressType: "IPv4",
    endpoints,
    ports,
  });
}

const svc = (name: string) => `${name}.default.svc.cluster.local.`;

const changes: readonly Change[] = [
  {
    title: "a service that comes, where it was asked for too early",
    prepare: () => undefined,
    change: (api) => putService(api, "early", { clusterIP: "10.96.1.1" }),
    questions: [
      { name: svc("early"), type: "A", before: ["NXDOMAIN"], now: ["A 10.96.1.1"] },
      { name: "1.1.96.10.in-addr.arpa.", type: "PTR", before: ["NXDOMAIN"], now: [`PTR ${svc("early")}`] },
    ],
  },
  {
    title: "a service that goes",
    prepare: (api) => putService(api, "late", { clusterIP: "10.96.1.2" }),
    change: (api) => api.delete("services", "default", "late"),
    questions: [
      { name: svc("late"), type: "A", before: ["A 10.96.1.2"], now: ["NXDOMAIN"] },
      { name: "2.1.96.10.in-addr.arpa.", type: "PTR", before: [`PTR ${svc("late")}`], now: ["NXDOMAIN"] },
    ],
  },
  {
    title: "an ExternalName that becomes a service with an address (rule 56)",
    prepare: (api) => putService(api, "alias", { type: "ExternalName", externalName: "www.example.com" }),
    change: (api) => putService(api, "alias", { type: "ClusterIP", clusterIP: "10.96.1.3" }),
    questions: [
      {
        name: svc("alias"),
        type: "A",
        before: ["CNAME www.example.com.", "A 192.0.2.53"],
        now: ["A 10.96.1.3"],
      },
      { name: svc("alias"), type: "CNAME", before: ["CNAME www.example.com."], now: ["NOERROR"] },
    ],
  },
  {
    title: "a pod that was restarted under another address (rule 61)",
    prepare: (api) => {
      putService(api, "db", { clusterIP: "None" });
      putSlice(api, "db", [{ addresses: ["10.0.0.1"], hostname: "db-0" }]);
    },
    change: (api) => putSlice(api, "db", [{ addresses: ["10.0.0.2"], hostname: "db-0" }]),
    questions: [
      { name: svc("db-0.db"), type: "A", before: ["A 10.0.0.1"], now: ["A 10.0.0.2"] },
      { name: svc("db"), type: "A", before: ["A 10.0.0.1"], now: ["A 10.0.0.2"] },
      { name: "1.0.0.10.in-addr.arpa.", type: "PTR", before: [`PTR ${svc("db-0.db")}`], now: ["NXDOMAIN"] },
      { name: "2.0.0.10.in-addr.arpa.", type: "PTR", before: ["NXDOMAIN"], now: [`PTR ${svc("db-0.db")}`] },
    ],
  },
  {
    title: "an endpoint on its way out, whatever it still serves (rule 57)",
    prepare: (api) => {
      putService(api, "leaving", { clusterIP: "None" });
      putSlice(api, "leaving", [{ addresses: ["10.0.1.1"] }, { addresses: ["10.0.1.2"] }]);
    },
    change: (api) =>
      putSlice(api, "leaving", [
        { addresses: ["10.0.1.1"] },
        { addresses: ["10.0.1.2"], conditions: { ready: false, serving: true, terminating: true } },
      ]),
    questions: [
      { name: svc("leaving"), type: "A", before: ["A 10.0.1.1", "A 10.0.1.2"], now: ["A 10.0.1.1"] },
    ],
  },
  {
    title: "publishNotReadyAddresses that is switched on",
    prepare: (api) => {
      putService(api, "eager", { clusterIP: "None" });
      putSlice(api, "eager", [{ addresses: ["10.0.2.1"], conditions: { ready: false } }]);
    },
    change: (api) => putService(api, "eager", { clusterIP: "None", publishNotReadyAddresses: true }),
    questions: [{ name: svc("eager"), type: "A", before: ["NXDOMAIN"], now: ["A 10.0.2.1"] }],
  },
  {
    title: "a service that gains a second family (rule 72)",
    prepare: (api) => putService(api, "dual", { clusterIP: "10.96.1.4", clusterIPs: ["10.96.1.4"] }),
    change: (api) =>
      putService(api, "dual", { clusterIP: "10.96.1.4", clusterIPs: ["10.96.1.4", "fd00::14"] }),
    questions: [
      { name: svc("dual"), type: "AAAA", before: ["NOERROR"], now: ["AAAA fd00::14"] },
      {
        name: `4.1.${"0.".repeat(28)}d.f.ip6.arpa.`,
        type: "PTR",
        before: ["NXDOMAIN"],
        now: [`PTR ${svc("dual")}`],
      },
    ],
  },
  {
    title: "an address that a service takes over from an endpoint (rule 41)",
    prepare: (api) => {
      putService(api, "owner", { clusterIP: "None" });
      putSlice(api, "owner", [{ addresses: ["10.96.1.5"], hostname: "o" }]);
    },
    change: (api) => putService(api, "heir", { clusterIP: "10.96.1.5" }),
    questions: [
      {
        name: "5.1.96.10.in-addr.arpa.",
        type: "PTR",
        before: [`PTR ${svc("o.owner")}`],
        now: [`PTR ${svc("heir")}`],
      },
    ],
  },
  {
    title: "ports of a slice that have no number (rule 117)",
    prepare: (api) => {
      putService(api, "any", { clusterIP: "None" });
      putSlice(api, "any", [{ addresses: ["10.0.3.1"] }], [{ name: "http", port: 80 }]);
    },
    change: (api) => putSlice(api, "any", [{ addresses: ["10.0.3.2"] }], [{ name: "", port: null }]),
    questions: [{ name: svc("any"), type: "A", before: ["A 10.0.3.1"], now: ["A 10.0.3.2"] }],
  },
  {
    title: "a namespace that goes",
    prepare: (api) => api.put("namespaces", { metadata: { name: "passing" } }),
    change: (api) => api.delete("namespaces", "", "passing"),
    questions: [
      { name: "passing.svc.cluster.local.", type: "A", before: ["NOERROR"], now: ["NXDOMAIN"] },
      { name: "passing.svc.clusterset.local.", type: "A", before: ["NOERROR"], now: ["NXDOMAIN"] },
    ],
  },
  {
    title: "an external address, under its name and the other way round",
    prepare: (api) => putService(api, "out", { clusterIP: "10.96.1.6", externalIPs: ["192.0.2.1"] }),
    change: (api) =>
      putService(
        api,
        "out",
        { clusterIP: "10.96.1.6" },
        { loadBalancer: { ingress: [{ ip: "192.0.2.2" }] } },
      ),
    questions: [
      { name: "out.default.example.org.", type: "A", before: ["A 192.0.2.1"], now: ["A 192.0.2.2"] },
      {
        name: "1.2.0.192.in-addr.arpa.",
        type: "PTR",
        before: ["PTR out.default.example.org."],
        now: ["NXDOMAIN"],
      },
      {
        name: "2.2.0.192.in-addr.arpa.",
        type: "PTR",
        before: ["NXDOMAIN"],
        now: ["PTR out.default.example.org."],
      },
    ],
  },
  {
    title: "a service of another cluster",
    prepare: (api) =>
      api.put("serviceimports", {
        metadata: metadata("pay"),
        spec: { type: "ClusterSetIP", ips: ["10.112.0.1"] },
      }),
    change: (api) =>
      api.put("serviceimports", {
        metadata: metadata("pay"),
        spec: { type: "ClusterSetIP", ips: ["10.112.0.2"] },
      }),
    questions: [
      {
        name: "pay.default.svc.clusterset.local.",
        type: "A",
        before: ["A 10.112.0.1"],
        now: ["A 10.112.0.2"],
      },
    ],
  },
];

describe("behind a cache of half a minute the next answer is right after", () => {
  let api: ApiSimulator;
  let outside: OutsideWorld;
  let program: Portolan;

  before(async () => {
    api = await ApiSimulator.start();
    outside = await OutsideWorld.start();
    for (const { prepare } of changes) prepare(api);
    program = await Portolan.start((port) =>
      [
        `.:${port("dns")} {`,
        "  bind 127.0.0.1",
        "  cache 30",
        "  k8s_external example.org 192.0.2.0/24 {\n    ttl 30\n  }",
        "  kubernetes cluster.local clusterset.local in-addr.arpa ip6.arpa {",
        `    endpoint ${api.url}`,
        "    multicluster clusterset.local",
        "    ttl 30",
        "  }",
        `  forward . 127.0.0.1:${outside.port} {\n    prefer_udp\n  }`,
        "}",
      ].join("\n"),
    );
    await untilSynced(program);
  });

  after(async () => {
    await program?.[Symbol.asyncDispose]();
    await outside?.[Symbol.asyncDispose]();
    await api.close();
  });

  for (const { title, change, questions } of changes) {
    it(title, async () => {
      // Twice, so that the cache has it.
      for (let n = 0; n < 2; n++)
        for (const { name, type, before: expected } of questions)
          assert.deepEqual(await answerTo(program, name, type), expected, `${name} ${type}`);
      change(api);
      const deadline = Date.now() + PATIENCE_MS;
      for (const { name, type, now } of questions) {
        let answer = await answerTo(program, name, type);
        while (answer.join() !== now.join() && Date.now() < deadline)
          answer = await answerTo(program, name, type);
        assert.deepEqual(answer, now, `${name} ${type}`);
      }
    });
  }
});

async function answerTo(program: Portolan, name: string, type: string): Promise<string[]> {
  const { rcode, answer } = await askOverTcp(program, name, type);
  if (answer.length === 0) return [rcodeName(rcode)];
  const records = answer.map((record) => formatRecord(record).split(/\s+/).slice(3).join(" "));
  return records.sort(
    (left, right) =>
      Number(right.startsWith("CNAME")) - Number(left.startsWith("CNAME")) || (left < right ? -1 : 1),
  );
}
