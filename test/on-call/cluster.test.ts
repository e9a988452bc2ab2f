/** Breakages of a cluster, made for real: whether the log, `explain`, `doctor` and the console name the cause. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ask } from "../support/dns-client.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { consoleNow, Examination, explain, troublesOf, why } from "../support/on-call.ts";
import { Peer } from "../support/peers.ts";
import { Pod } from "../support/pod-fleet.ts";
import { Portolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

const NXDOMAIN = 3;
const SERVFAIL = 2;

/** Of all the world, it has nothing. */
let upstream: Peer;
before(async () => {
  upstream = await Peer.unbound([]);
});
after(async () => {
  await upstream?.[Symbol.asyncDispose]();
});

function corefile(port: (name: string) => number, api: ApiSimulator): string {
  return `.:${port("dns")} {
    bind 127.0.0.1
    errors
    console 127.0.0.1:${port("console")}
    ready 127.0.0.1:${port("ready")}
    kubernetes cluster.local {
        endpoint ${api.url}
        pods verified
        startup_timeout 1s
        ttl 300
    }
    cache 300
    forward . 127.0.0.1:${upstream.port}
}`;
}

function putService(api: ApiSimulator, name: string, spec: object): void {
  const ports = [{ name: "http", port: 80, protocol: "TCP" }];
  api.put("services", { metadata: { name, namespace: "shop" }, spec: { ports, ...spec } });
}

function putEndpoints(
  api: ApiSimulator,
  service: string,
  endpoints: readonly { readonly address: string; readonly ready: boolean }[],
): void {
  api.put("endpointslices", {
    metadata: { name: `${service}-1`, namespace: "shop", labels: { "kubernetes.io/service-name": service } },
    addressType: "IPv4",
    ports: [{ name: "http", port: 80, protocol: "TCP" }],
    endpoints: endpoints.map(({ address, ready }) => ({ addresses: [address], conditions: { ready } })),
  });
}

describe("a cluster with mistakes in it", () => {
  let api: ApiSimulator;
  let server: Portolan;
  let doctor: Examination;

  before(async () => {
    api = await ApiSimulator.start();
    api.put("namespaces", { metadata: { name: "shop" } });
    putService(api, "storefront", { clusterIP: "10.96.0.1", clusterIPs: ["10.96.0.1"] });
    putEndpoints(api, "storefront", [{ address: "10.244.1.1", ready: true }]);
    putService(api, "orders", {
      clusterIP: "10.96.0.2",
      clusterIPs: ["10.96.0.2"],
      selector: { app: "odrers" },
    });
    putService(api, "queue", { clusterIP: "None", clusterIPs: ["None"] });
    putEndpoints(api, "queue", [{ address: "10.244.1.2", ready: false }]);
    putService(api, "gossip", {
      clusterIP: "None",
      clusterIPs: ["None"],
      publishNotReadyAddresses: true,
    });
    // The API marks all endpoints of such a Service as ready, and says in `serving` what their probes say.
    api.put("endpointslices", {
      metadata: { name: "gossip-1", namespace: "shop", labels: { "kubernetes.io/service-name": "gossip" } },
      addressType: "IPv4",
      ports: [{ name: "http", port: 80, protocol: "TCP" }],
      endpoints: [{ addresses: ["10.244.1.3"], conditions: { ready: true, serving: false } }],
    });
    server = await Portolan.start((port) => corefile(port, api));
    await untilTrue(async () => (await server.page("ready", "/ready")).status === 200);
    await using web = await Pod.start(api, server, {
      namespace: "shop",
      name: "web-6d4cf56db6-x2x5c",
      address: "127.1.0.1",
    });
    await untilTrue(async () => (await ask(server, "127-1-0-1.shop.pod.cluster.local.")).rcode === 0);
    for (let round = 0; round < 3; round++) await web.ask("storefront.shop.svc.cluster.local.");
    for (let round = 0; round < 30; round++) {
      await web.ask("storefrnt.shop.svc.cluster.local.");
      await web.resolve("api.example.com");
    }
    doctor = await Examination.of(server);
  });
  after(async () => {
    await server?.[Symbol.asyncDispose]();
    await api?.close();
  });

  test("a typo in a Service's name: explain says which is meant, behind the cached answer, too, and so does doctor", async () => {
    const text = await explain(server, "storefrnt.shop.svc.cluster.local");
    assert.match(text, /cache +answers NXDOMAIN/);
    assert.match(text, /- cached \d+ s ago; valid for \d+ s more/);
    assert.match(text, /behind the cache: what would be answered now/);
    assert.match(text, /kubernetes +answers NXDOMAIN/);
    assert.match(
      text,
      /there is no Service storefrnt in namespace shop, nor in any other; is storefront meant\?/,
    );
    assert.match(
      doctor.words("absent-names"),
      /^storefrnt\.shop\.svc\.cluster\.local\. +30 queries, by shop\/deployment\/web$/m,
    );
    assert.match(
      doctor
        .finding("absent-names")
        .remedies.map(({ text }) => text)
        .join(),
      /storefront/,
    );
  });

  test("a search path storm: doctor names the namespace and the workload", async () => {
    assert.match(
      doctor.words("search-path"),
      /^shop +90 of \d+ queries .*\nshop\/deployment\/web +90 queries wasted$/m,
    );
  });

  test("a selector that matches no pod: explain says that the Service has no endpoints", async () => {
    const text = await why(server, "orders.shop.svc.cluster.local.");
    assert.match(text, /Service shop\/orders: cluster address 10\.96\.0\.2; no endpoints/);
  });

  test("a headless Service without a ready endpoint: explain says so", async () => {
    const text = await why(server, "queue.shop.svc.cluster.local.");
    assert.match(text, /1 endpoint, not ready, publishNotReadyAddresses is off/);
  });

  test("endpoints that are published although they are not ready are not called ready", async () => {
    const text = await why(server, "gossip.shop.svc.cluster.local.");
    assert.match(text, /1 endpoint, published whether ready or not \(publishNotReadyAddresses\)/);
  });

  for (const typed of ["storefront.shop", "storefront.shop.svc", "storefront"]) {
    test(`a name as people type it, ${typed}: explain says which Service is meant and how to ask for it`, async () => {
      const text = await why(server, `${typed}.`);
      assert.match(text, /answers NXDOMAIN/);
      assert.match(
        text,
        /Service shop\/storefront exists: ask for storefront\.shop\.svc\.cluster\.local\., /,
      );
      assert.match(text, /-from \S+\/POD to follow the search path/);
    });
  }
});

test("a role that lacks a resource: log, explain, doctor and console name it, and the command that grants it", async () => {
  await using api = await ApiSimulator.start();
  api.permits = ({ resource }) => resource !== "endpointslices" && resource !== "endpoints";
  await using server = await Portolan.start((port) => corefile(port, api));
  const missing =
    /needs the verbs? list and watch on resource "endpointslices" of API group "discovery\.k8s\.io"/;
  await server.waitForLog(missing);
  for (let round = 0; round < 5; round++)
    assert.equal((await ask(server, `web${round}.shop.svc.cluster.local.`)).rcode, SERVFAIL);
  assert.match(await explain(server, "web.shop.svc.cluster.local"), missing);
  assert.match(await troublesOf(server), missing);
  assert.deepEqual((await consoleNow(server)).notReady, ["kubernetes"]);
  const doctor = await Examination.of(server);
  assert.deepEqual(doctor.codes.slice(0, 3), ["not-ready", "cluster-data", "servfail"]);
  assert.match(doctor.words("not-ready"), missing);
  assert.match(doctor.words("cluster-data"), missing);
  assert.match(doctor.words("servfail"), /kubernetes 100 %/);
  assert.ok(!doctor.codes.includes("aaaa"));
});

test("an API that goes away: the log says it once and says its end, doctor and console tell how old the data is", async () => {
  await using api = await ApiSimulator.start();
  api.put("namespaces", { metadata: { name: "shop" } });
  putService(api, "storefront", { clusterIP: "10.96.0.1", clusterIPs: ["10.96.0.1"] });
  await using server = await Portolan.start((port) => corefile(port, api));
  await untilTrue(async () => (await server.page("ready", "/ready")).status === 200);
  await api.close();
  await untilTrue(async () => /the data is \d+s old: /.test(await troublesOf(server)));
  const text = await explain(server, "storefrnt.shop.svc.cluster.local");
  assert.match(text, /last message from the Kubernetes API: [\d.]+ s ago/);
  const doctor = await Examination.of(server);
  assert.equal(doctor.codes[0], "cluster-data");
  assert.match(
    doctor.words("cluster-data"),
    /the data is \d+s old: .*(nothing listens|ECONNREFUSED|refused)/,
  );
  assert.equal((await ask(server, "storefront.shop.svc.cluster.local.")).rcode, 0);
  const start = server.log.length;
  await api.open();
  await untilTrue(async () => (await troublesOf(server)) === "");
  assert.doesNotMatch(server.log.slice(start), /\[ERROR\]/);
  assert.equal((await ask(server, "nothing.shop.svc.cluster.local.")).rcode, NXDOMAIN);
});
