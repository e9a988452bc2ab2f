/** A reload takes over the cluster that the configuration in force watches, where the next one wants the same of it. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { afterEach, describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { queryObjects } from "node:v8";
import { nodeHost } from "../../src/corefile/node-host.ts";
import {
  A,
  decodeMessage,
  encodeMessage,
  makeQuery,
  Name,
  RecordType,
  rcodeName,
} from "../../src/dns/index.ts";
import { ClusterStore } from "../../src/kubernetes/store/store.ts";
import { MemoryLog } from "../../src/lib/logging/log.ts";
import { MetricsRegistry } from "../../src/lib/metrics/metrics.ts";
import { SystemClock } from "../../src/lib/time/clock.ts";
import { KubernetesInstance } from "../../src/plugins/kubernetes/instance.ts";
import { systemRandom, thisMachine } from "../../src/server/configuration/machine.ts";
import { PluginRegistry } from "../../src/server/configuration/plugin-registry.ts";
import { Server } from "../../src/server/server.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { untilTrue } from "../support/until-true.ts";

const opened: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

function service(api: ApiSimulator, name: string, clusterIP: string): void {
  api.put("services", { metadata: { name, namespace: "default" }, spec: { clusterIP } });
}

async function startApi(): Promise<ApiSimulator> {
  const api = await ApiSimulator.start();
  opened.push(() => api.close());
  service(api, "web", "10.96.0.1");
  return api;
}

/** A server whose Corefile is what `lines` is at the moment. */
class TestServer {
  readonly log = new MemoryLog();
  readonly metrics = new MetricsRegistry();
  /** In the block of `kubernetes`. */
  lines: string;
  zone = "cluster.local";
  /** Beside `kubernetes`. */
  more = "";
  readonly server: Server;

  constructor(lines: string, registry: PluginRegistry) {
    this.lines = lines;
    this.server = new Server({
      source: () => ({ text: this.corefile, file: "Corefile" }),
      registry,
      host: nodeHost,
      machine: thisMachine({}),
      clock: new SystemClock(),
      random: systemRandom(),
      log: this.log,
      metrics: this.metrics,
      version: "0.0.0",
    });
    opened.push(() => this.server.stop());
  }

  static async start(lines: string): Promise<TestServer> {
    const server = new TestServer(lines, await PluginRegistry.builtIn());
    await server.server.start();
    await until(async () => (await server.answer("web")).startsWith("1"));
    return server;
  }

  get corefile(): string {
    const { zone, lines, more } = this;
    return `.:0 {\nbind 127.0.0.1\nexplain 127.0.0.1:0\nkubernetes ${zone} {\n${lines}\n}\n${more}\n}\n`;
  }

  /** `10.96.0.1 ttl 5`, or the rcode. */
  async answer(name: string, zone = this.zone): Promise<string> {
    const [address] = this.server.addresses;
    const question = `${name}.default.svc.${zone}.`;
    return ask(address ?? assert.fail("it does not listen"), question);
  }
}

async function ask({ port }: { port: number }, name: string): Promise<string> {
  const socket = createSocket("udp4");
  try {
    const received = new Promise<Uint8Array>((resolve) => socket.once("message", resolve));
    socket.send(encodeMessage(makeQuery({ name: Name.parse(name), type: RecordType.A })), port, "127.0.0.1");
    const { rcode, answer } = decodeMessage(await received);
    const [first] = answer;
    if (first === undefined || !A.is(first)) return rcodeName(rcode);
    return `${first.data.address} ttl ${first.ttl}`;
  } finally {
    socket.close();
  }
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  await untilTrue(condition, { between: () => nextTurn() });
}

async function counted(kind: abstract new (...args: never) => unknown): Promise<number> {
  for (let turn = 0; turn < 5; turn++) await nextTurn();
  return queryObjects(kind as new () => unknown, { format: "count" });
}

describe("a reload that wants the same of the same cluster", () => {
  it("lists nothing, makes no second store and answers at once, ten times one after the other", async () => {
    // Tests of other files in the same process have some, too.
    const before = { stores: await counted(ClusterStore), instances: await counted(KubernetesInstance) };
    const api = await startApi();
    const test = await TestServer.start(`endpoint ${api.url}`);
    await until(() => api.openWatches === 3);
    const requests = api.requests.length;
    for (let ttl = 6; ttl <= 15; ttl++) {
      test.lines = `endpoint ${api.url}\nttl ${ttl}\nfallthrough`;
      test.zone = ttl % 2 === 0 ? "cluster.local" : "cluster.example";
      const reloading = test.server.reload();
      // A full collection each takes a while.
      if (ttl === 10) assert.equal((await counted(ClusterStore)) - before.stores, 1, "while it reloads");
      await reloading;
      assert.equal(await test.answer("web"), `10.96.0.1 ttl ${ttl}`);
    }
    assert.equal((await counted(ClusterStore)) - before.stores, 1, "when it has reloaded");
    assert.equal(api.requests.length, requests);
    assert.equal(api.openWatches, 3);
    await until(async () => (await counted(KubernetesInstance)) - before.instances === 1);
    service(api, "new", "10.96.0.2");
    await until(async () => (await test.answer("new")) === "10.96.0.2 ttl 15");
    const { body } = await test.metrics.expose();
    assert.match(body, /data_age_seconds{zone="cluster.example.",resource="services"}/);
    assert.match(body, /portolan_memory_cluster_bytes{zone="cluster.example."} [1-9]/);
    assert.doesNotMatch(body, /zone="cluster.local."/);
    await test.server.stop();
    await until(() => api.openWatches === 0);
  });

  it("works while another one has hardly ended", async () => {
    const api = await startApi();
    const test = await TestServer.start(`endpoint ${api.url}`);
    await until(() => api.openWatches === 3);
    const requests = api.requests.length;
    test.lines = `endpoint ${api.url}\nttl 7`;
    await Promise.all([test.server.reload(), test.server.reload(), test.server.reload()]);
    assert.equal(await test.answer("web"), "10.96.0.1 ttl 7");
    service(api, "web", "10.96.0.3");
    await until(async () => (await test.answer("web")) === "10.96.0.3 ttl 7");
    assert.equal(api.requests.length, requests);
  });

  it("that is refused leaves the cluster with the configuration in force", async () => {
    const api = await startApi();
    const test = await TestServer.start(`endpoint ${api.url}`);
    await until(() => api.openWatches === 3);
    const requests = api.requests.length;
    // One fails behind the start of the cluster, the other where all have started and a socket cannot be opened.
    for (const more of [
      "kubernetes second.example {\nmanifests /nowhere\n}",
      "errors\n}\n.:0 {\nbind 192.0.2.77\nwhoami",
    ]) {
      test.more = more;
      await assert.rejects(test.server.reload(), more);
    }
    service(api, "web", "10.96.0.3");
    await until(async () => (await test.answer("web")) === "10.96.0.3 ttl 5");
    test.more = "";
    await test.server.reload();
    service(api, "web", "10.96.0.4");
    await until(async () => (await test.answer("web")) === "10.96.0.4 ttl 5");
    assert.equal(api.requests.length, requests);
    await test.server.stop();
    await until(() => api.openWatches === 0);
  });

  it("answers by the same store where the way to it is another, and closes the former one", async () => {
    const api = await startApi();
    const test = await TestServer.start(`endpoint ${api.url}`);
    await until(() => api.openWatches === 3);
    test.lines = `endpoint ${api.url}\napiserver_qps 50`;
    await test.server.reload();
    assert.equal(await test.answer("web"), "10.96.0.1 ttl 5");
    await until(() => api.openWatches === 3);
    service(api, "web", "10.96.0.3");
    await until(async () => (await test.answer("web")) === "10.96.0.3 ttl 5");
    await test.server.stop();
    await until(() => api.openWatches === 0);
  });
});

it("a reload that wants something else of it lists it anew, and the former cluster goes", async () => {
  const before = await counted(ClusterStore);
  const api = await startApi();
  const test = await TestServer.start(`endpoint ${api.url}`);
  await until(() => api.openWatches === 3);
  for (const line of ["noendpoints", "labels !hidden", "pods verified", "endpoint_pod_names"]) {
    const requests = api.requests.length;
    test.lines = `endpoint ${api.url}\n${line}`;
    await test.server.reload();
    assert.ok(api.requests.length > requests, line);
    assert.equal(await test.answer("web"), "10.96.0.1 ttl 5", line);
  }
  test.more = "k8s_external example.org";
  const requests = api.requests.length;
  await test.server.reload();
  assert.ok(api.requests.length > requests, "external addresses");
  await until(async () => (await counted(ClusterStore)) - before === 1);
});
