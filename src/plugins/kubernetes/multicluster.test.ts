/**
 * Services imported from other clusters, through a live API: the rules for their names are in the table of the
 * specification.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, it } from "node:test";
import { ApiSimulator } from "../../../test/support/kubernetes-api/api-simulator.ts";
import { RESOURCE_TYPES } from "../../../test/support/kubernetes-api/resource-types.ts";
import { Rcode } from "../../dns/numbers.ts";
import { formatRecord } from "../../dns/resource-record.ts";
import { type Feed, feedToNobody } from "../../plugin/contract/site.ts";
import { PluginTest, type PluginTestOptions, until } from "../../plugin/testing.ts";
import kubernetes from "./index.ts";

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close();
});

const WITHOUT_CRD = { types: RESOURCE_TYPES.filter(({ plural }) => plural !== "serviceimports") };

async function startApi(options: Parameters<typeof ApiSimulator.start>[0] = {}): Promise<ApiSimulator> {
  const api = await ApiSimulator.start(options);
  opened.push(api);
  api.put("services", { metadata: { name: "web", namespace: "default" }, spec: { clusterIP: "10.96.0.1" } });
  putImport(api, "pay", { type: "ClusterSetIP", ips: ["10.42.0.5"], ports: [{ name: "http", port: 80 }] });
  putImport(api, "ring", { type: "Headless", ports: [{ name: "http", port: 80 }] });
  putSlice(api, "ring", "east", "172.0.0.2");
  return api;
}

function putImport(api: ApiSimulator, name: string, spec: object, labels: object = {}): void {
  const metadata = { name, namespace: "default", labels };
  api.put("serviceimports", {
    apiVersion: "multicluster.x-k8s.io/v1alpha1",
    kind: "ServiceImport",
    metadata,
    spec,
  });
}

function putSlice(api: ApiSimulator, service: string, cluster: string, address: string): void {
  api.put("endpointslices", {
    metadata: {
      name: `${service}-${cluster}`,
      namespace: "default",
      labels: {
        "multicluster.kubernetes.io/service-name": service,
        "multicluster.kubernetes.io/source-cluster": cluster,
      },
    },
    addressType: "IPv4",
    endpoints: [{ addresses: [address], hostname: "ring-0" }],
    ports: [{ name: "http", port: 80, protocol: "TCP" }],
  });
}

function make(
  api: ApiSimulator,
  lines: readonly string[] = ["multicluster clusterset.local"],
  more: PluginTestOptions = {},
) {
  const plugin = PluginTest.of(
    kubernetes,
    `kubernetes cluster.local clusterset.local {\nendpoint ${api.url}\n${lines.join("\n")}\n}`,
    more,
  );
  opened.push({ close: () => plugin.stop() });
  return plugin;
}

type Plugin = ReturnType<typeof make>;

/** Waits for a condition while advancing the plugin's clock. */
async function untilSeen(plugin: Plugin, done: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (!(await done())) {
    if (Date.now() > deadline) throw new Error(`it never came to pass; log:\n${plugin.log.lines.join("\n")}`);
    plugin.clock.advance(100);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

const PAY = "pay.default.svc.clusterset.local.";
const RING_0 = "ring-0.east.ring.default.svc.clusterset.local.";

async function answerTo(plugin: Plugin, name: string, type = "A"): Promise<string> {
  const { answer, rcode } = await plugin.ask({ name, type });
  return rcode === Rcode.NOERROR ? answer.join("; ") : `rcode ${rcode}`;
}

describe("imports from other clusters", () => {
  it("are listed and watched beside the cluster, as JSON and by their label", async () => {
    const api = await startApi();
    const accepted = new Set<string>();
    api.admits = ({ headers }) => {
      accepted.add(String(headers.accept));
      return true;
    };
    const plugin = make(api, ["multicluster clusterset.local", "labels !hidden"]);
    await plugin.start();
    assert.equal(await answerTo(plugin, PAY), `${PAY} 5 IN A 10.42.0.5`);
    assert.equal(await answerTo(plugin, RING_0), `${RING_0} 5 IN A 172.0.0.2`);
    assert.equal(await answerTo(plugin, "pay.default.svc.cluster.local."), `rcode ${Rcode.NXDOMAIN}`);
    assert.deepEqual(
      api.requests.map(({ resource, parameters }) => `${resource} ${parameters.get("labelSelector")}`).sort(),
      [
        "endpointslices !hidden",
        "endpointslices !hidden,multicluster.kubernetes.io/service-name",
        "namespaces null",
        "serviceimports !hidden",
        "services !hidden",
      ],
    );
    assert.deepEqual([...accepted].sort(), [
      "application/json",
      "application/vnd.kubernetes.protobuf,application/json",
    ]);
    assert.deepEqual(plugin.log.lines, [], "slices of imports are no faulty slices of services");

    putImport(api, "pay", { type: "ClusterSetIP", ips: ["10.42.0.6"] });
    putSlice(api, "ring", "west", "172.0.1.2");
    await until(() => api.openWatches === 5);
    await untilSeen(plugin, async () => (await answerTo(plugin, PAY)).endsWith("10.42.0.6"));
    await untilSeen(
      plugin,
      async () =>
        (await answerTo(plugin, "ring-0.west.ring.default.svc.clusterset.local.")) !==
        `rcode ${Rcode.NXDOMAIN}`,
    );
    api.delete("serviceimports", "default", "pay");
    await untilSeen(plugin, async () => (await answerTo(plugin, PAY)) === `rcode ${Rcode.NXDOMAIN}`);
  });

  it("are not requested without a zone for them", async () => {
    const api = await startApi();
    const plugin = make(api, []);
    await plugin.start();
    assert.ok(api.requests.every(({ resource }) => resource !== "serviceimports"));
    assert.equal(api.requests.filter(({ resource }) => resource === "endpointslices").length, 1);
    assert.equal(
      await answerTo(plugin, "web.default.svc.clusterset.local."),
      "web.default.svc.clusterset.local. 5 IN A 10.96.0.1",
    );
  });

  it("have metrics, state and a serial of their own", async () => {
    const api = await startApi();
    const plugin = make(api);
    await plugin.start();
    const { body } = await plugin.metrics.expose();
    assert.match(body, /data_age_seconds{zone="cluster.local.",resource="serviceimports"} 0/);
    assert.match(body, /data_age_seconds{zone="cluster.local.",resource="imported endpoints"} 0/);
    const state = plugin.instances[0]?.describeState?.() ?? [];
    assert.ok(state.includes("cluster.local. serviceimports: watching, age 0s"), state.join("\n"));
    assert.ok(state.includes("cluster.local. imported endpointslices: watching, age 0s"), state.join("\n"));
    const serial = async (zone: string) => Number((await answerTo(plugin, zone, "SOA")).split(" ")[6]);
    const before = [await serial("cluster.local."), await serial("clusterset.local.")];
    plugin.clock.advance(5000);
    putImport(api, "more", { type: "ClusterSetIP", ips: ["10.42.0.9"] });
    await untilSeen(plugin, async () =>
      (await answerTo(plugin, "more.default.svc.clusterset.local.")).endsWith(".9"),
    );
    assert.equal(await serial("cluster.local."), before[0]);
    assert.ok((await serial("clusterset.local.")) >= (before[1] ?? 0) + 5);
  });

  it("are in namespaces of this cluster, which come and go", async () => {
    const api = await startApi();
    const plugin = make(api);
    await plugin.start();
    api.put("serviceimports", {
      metadata: { name: "pay", namespace: "late" },
      spec: { type: "ClusterSetIP", ips: ["10.42.0.8"] },
    });
    const late = "pay.late.svc.clusterset.local.";
    assert.equal(await answerTo(plugin, late), `rcode ${Rcode.NXDOMAIN}`);
    api.put("namespaces", { metadata: { name: "late" } });
    await untilSeen(plugin, async () => (await answerTo(plugin, late)).endsWith("10.42.0.8"));
    api.delete("namespaces", "", "late");
    await untilSeen(plugin, async () => (await answerTo(plugin, late)) === `rcode ${Rcode.NXDOMAIN}`);
  });

  it("outdate the names in the cache that changed", async () => {
    const forgotten: string[] = [];
    const instance = {
      forget: (names: readonly { toString(): string }[]) => void forgotten.push(...names.map(String)),
    };
    const api = await startApi();
    const plugin = make(api, undefined, { neighbours: [{ name: "cache", instance }] });
    await plugin.start();
    // The first lists outdate whole zones.
    await untilSeen(plugin, () =>
      ["cluster.local.", "clusterset.local."].every((zone) => forgotten.includes(zone)),
    );
    plugin.clock.advance(1_000);
    forgotten.length = 0;
    putImport(api, "pay", { type: "ClusterSetIP", ips: ["10.42.0.6"] });
    await untilSeen(plugin, () => forgotten.length > 0);
    assert.deepEqual(forgotten, [PAY]);
  });

  it("are transferred as a zone", async () => {
    const api = await startApi();
    const plugin = make(api);
    await plugin.start();
    const source = plugin.instances[0]?.transferSource ?? assert.fail("none");
    assert.deepEqual(source.transferZones.map(String), ["cluster.local.", "clusterset.local."]);
    const transfer = source.transfer(source.transferZones[1] ?? assert.fail("none"));
    const copy = [...(transfer?.records() ?? [])].map((record) => formatRecord(record).split(/\s+/));
    const owners = new Set(copy.map(([owner]) => owner));
    for (const owner of [PAY, RING_0, "_http._tcp.ring.default.svc.clusterset.local."])
      assert.ok(owners.has(owner), `${owner} is missing: ${[...owners].join()}`);
    assert.ok(!owners.has("web.default.svc.clusterset.local."));
  });

  it("set the metadata of an endpoint's cluster", async () => {
    const api = await startApi();
    const plugin = make(api);
    await plugin.start();
    const query = plugin.query({ name: RING_0 });
    query.metadata = new Map();
    plugin.instances[0]?.provideMetadata?.(query);
    const labels = ["cluster", "endpoint", "service", "namespace", "kind"];
    assert.deepEqual(
      labels.map((label) => query.metadata?.get(`kubernetes/${label}`)),
      ["east", "ring-0", "ring", "default", "svc"],
    );
  });

  it("outlive a restart without the API in the snapshot", async () => {
    const folder = mkdtempSync(join(tmpdir(), "portolan-imports-"));
    opened.push({ close: async () => rmSync(folder, { recursive: true }) });
    const lines = [
      "multicluster clusterset.local",
      `snapshot ${join(folder, "snapshot")}`,
      "startup_timeout 0s",
    ];
    const api = await startApi();
    const first = make(api, lines);
    await first.start();
    await untilSeen(first, () => first.instances[0]?.ready?.() === true);
    await first.stop();
    await api.close();
    const second = make(api, lines);
    await Promise.all([
      second.start(),
      untilSeen(second, () => second.log.lines.some((line) => line.includes("unsynced"))),
    ]);
    assert.equal(await answerTo(second, PAY), `${PAY} 5 IN A 10.42.0.5`);
    assert.equal(await answerTo(second, RING_0), `${RING_0} 5 IN A 172.0.0.2`);
    assert.equal(await answerTo(second, "no.default.svc.clusterset.local."), `rcode ${Rcode.SERVFAIL}`);
    assert.equal(await answerTo(second, "pay.default.svc.cluster.local."), `rcode ${Rcode.SERVFAIL}`);
  });

  it("reach the other data planes", async () => {
    const api = await startApi();
    const feed = new TwoEnds();
    const leader = make(api, undefined, { site: { feed: feed.leader } });
    await leader.start();
    const follower = make(api, undefined, { site: { feed: feed.follower } });
    await follower.start();
    assert.equal(await answerTo(follower, PAY), `${PAY} 5 IN A 10.42.0.5`);
    assert.equal(
      await answerTo(follower, "web.default.svc.cluster.local."),
      await answerTo(leader, "web.default.svc.cluster.local."),
    );
    assert.equal(
      await answerTo(follower, "clusterset.local.", "SOA"),
      await answerTo(leader, "clusterset.local.", "SOA"),
    );
    putSlice(api, "ring", "west", "172.0.1.2");
    const name = "ring-0.west.ring.default.svc.clusterset.local.";
    await untilSeen(leader, async () => (await answerTo(follower, name)) === `${name} 5 IN A 172.0.1.2`);
    assert.equal(await answerTo(follower, "no.default.svc.clusterset.local."), `rcode ${Rcode.NXDOMAIN}`);
  });
});

describe("without the resource definitions of the Multi-Cluster Services API", () => {
  it("nothing is imported, the rest starts, and the log says once what to do", async () => {
    const api = await startApi(WITHOUT_CRD);
    const plugin = make(api);
    await plugin.start();
    assert.ok(plugin.instances[0]?.ready?.());
    assert.equal(
      await answerTo(plugin, "web.default.svc.cluster.local."),
      "web.default.svc.cluster.local. 5 IN A 10.96.0.1",
    );
    assert.equal(await answerTo(plugin, PAY), `rcode ${Rcode.NXDOMAIN}`);
    const asked = () => api.requests.filter(({ path }) => path.includes("serviceimports")).length;
    const before = asked();
    await untilSeen(plugin, () => asked() >= before + 4);
    assert.deepEqual(
      plugin.log.lines.map((line) => line.replace(/next try in .*/, "next try")),
      [
        `[WARNING] plugin/kubernetes: cannot list serviceimports: the API server has no serviceimports of API group "multicluster.x-k8s.io" (404 Not Found): install the CRDs of the Multi-Cluster Services API (KEP-1645), or take 'multicluster' out; next try`,
      ],
    );
    assert.match(plugin.log.lines[0] ?? "", /next try in 30\./);
    const state = plugin.instances[0]?.describeState?.().join("\n") ?? "";
    assert.match(state, /serviceimports: not listed, failing since .*install the CRDs/);
  });

  it("they are served when they appear", async () => {
    const types = [...WITHOUT_CRD.types];
    const api = await startApi({ types });
    const plugin = make(api);
    await plugin.start();
    assert.equal(await answerTo(plugin, PAY), `rcode ${Rcode.NXDOMAIN}`);
    types.push(...RESOURCE_TYPES.filter(({ plural }) => plural === "serviceimports"));
    await untilSeen(plugin, async () => (await answerTo(plugin, PAY)) === `${PAY} 5 IN A 10.42.0.5`);
    assert.match(plugin.log.lines.at(-1) ?? "", /watching: serviceimports, after/);
  });
});

it("missing permissions are logged, and the zone answers SERVFAIL instead of NXDOMAIN", async () => {
  const api = await startApi();
  api.permits = ({ resource }) => resource !== "serviceimports";
  const plugin = make(api, ["multicluster clusterset.local", "startup_timeout 0s"]);
  await Promise.all([
    plugin.start(),
    untilSeen(plugin, () => plugin.log.lines.some((line) => line.includes("not listed yet"))),
  ]);
  await untilSeen(
    plugin,
    async () => (await answerTo(plugin, "no.default.svc.cluster.local.")) === `rcode ${Rcode.NXDOMAIN}`,
  );
  await untilSeen(plugin, () => plugin.log.lines.some((line) => line.includes("403")));
  assert.equal(await answerTo(plugin, PAY), `rcode ${Rcode.SERVFAIL}`);
  assert.equal(plugin.instances[0]?.ready?.(), false);
  assert.match(
    plugin.log.lines.join("\n"),
    /no right to list serviceimports \(403 Forbidden\): the ClusterRole .* on resource "serviceimports" of API group "multicluster\.x-k8s\.io"/,
  );
});

for (const [put, problem] of [
  [
    (api: ApiSimulator) => putImport(api, "odd", { type: "Virtual" }),
    'ServiceImport default/odd cannot be used: spec.type "Virtual" is neither ClusterSetIP nor Headless',
  ],
  [
    (api: ApiSimulator) => putImport(api, "bad", { type: "ClusterSetIP", ips: ["soon"] }),
    'ServiceImport default/bad cannot be used: spec.ips: "soon" is not an IP address',
  ],
  [
    (api: ApiSimulator) => putSlice(api, "ring", "not a label", "172.0.9.9"),
    'EndpointSlice default/ring-not a label cannot be used: the label multicluster.kubernetes.io/source-cluster "not a label" is not a DNS label',
  ],
] as const) {
  it(`logs: ${problem}`, async () => {
    const api = await startApi();
    put(api);
    const plugin = make(api);
    await plugin.start();
    assert.deepEqual(plugin.log.lines, [`[WARNING] plugin/kubernetes: ${problem}`]);
  });
}

it("the longest matching zone wins, and all zones may be multicluster zones", async () => {
  const api = await startApi();
  const of = (zones: string, option: string): Plugin => {
    const plugin = PluginTest.of(
      kubernetes,
      `kubernetes ${zones} {\nendpoint ${api.url}\nmulticluster ${option}\n}`,
    );
    opened.push({ close: () => plugin.stop() });
    return plugin;
  };
  const within = of("cluster.local set.cluster.local", "set.cluster.local");
  await within.start();
  assert.match(await answerTo(within, "pay.default.svc.set.cluster.local."), /10\.42\.0\.5$/);
  assert.match(await answerTo(within, "web.default.svc.cluster.local."), /10\.96\.0\.1$/);
  const around = of("set.local cluster.set.local", "set.local");
  await around.start();
  assert.match(await answerTo(around, "pay.default.svc.set.local."), /10\.42\.0\.5$/);
  assert.match(await answerTo(around, "web.default.svc.cluster.set.local."), /10\.96\.0\.1$/);
  const alone = of("set.local 10.in-addr.arpa", "set.local");
  await alone.start();
  assert.match(await answerTo(alone, "pay.default.svc.set.local."), /10\.42\.0\.5$/);
  assert.match(
    await answerTo(alone, "1.0.96.10.in-addr.arpa.", "PTR"),
    /PTR web\.default\.svc\.set\.local\.$/,
  );
});

/** A feed in one thread that copies its messages as between two threads. */
class TwoEnds {
  readonly #listeners: ((message: unknown) => Promise<void> | void)[] = [];
  #snapshot: () => Iterable<unknown> = () => [];

  readonly leader: Feed = {
    ...feedToNobody,
    role: "leader",
    publish: (message) => {
      for (const listener of this.#listeners) void listener(structuredClone(message));
    },
    provide: (snapshot) => {
      this.#snapshot = snapshot;
    },
    receive: () => undefined,
  };

  /** A follower that begins as soon as it listens. */
  readonly follower: Feed = {
    ...feedToNobody,
    role: "follower",
    publish: () => undefined,
    provide: () => undefined,
    receive: (listener) => {
      this.#listeners.push(listener);
      // The stores are made after the channels.
      queueMicrotask(() => {
        for (const message of this.#snapshot())
          if (message !== undefined) void listener(structuredClone(message));
      });
    },
  };
}
