/** Effects of a change in the cluster on answers, including cached ones and zone transfers. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Rcode, rcodeName } from "../../dns/numbers.ts";
import { CLUSTER } from "../../kubernetes/answers/cluster-service.ts";
import { ClusterView } from "../../kubernetes/answers/cluster-view.ts";
import type { EndpointSet, Service } from "../../kubernetes/objects/objects.ts";
import { packGroups } from "../../kubernetes/objects/reduce-endpoints.ts";
import { ClusterStore } from "../../kubernetes/store/store.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { FakeClock, PluginTest } from "../../plugin/testing.ts";
import k8sExternal from "./index.ts";

function service(name: string, externalAddresses: readonly string[], rest: Partial<Service> = {}): Service {
  return {
    namespace: "shop",
    name,
    type: "clusterIP",
    clusterAddresses: [],
    externalName: "",
    ports: [],
    publishNotReadyAddresses: false,
    externalAddresses,
    ...rest,
  };
}

function endpoints(name: string, addresses: readonly string[]): EndpointSet {
  const list = addresses.map((text) => ({
    octets: parseIpAddress(text) ?? assert.fail(text),
    ready: true,
    label: "",
    zone: "",
  }));
  return { namespace: "shop", name: `${name}-1`, service: name, groups: packGroups(list, []) };
}

/** The plugin over a store that the test fills. */
async function start(directive: string) {
  const clock = new FakeClock({ wallTime: 1_700_000_000_000 });
  const store = new ClusterStore({ clock, kinds: ["namespaces", "services", "endpoints"] });
  const told: string[][] = [];
  const view = new ClusterView({
    store,
    ttl: 5,
    pods: "disabled",
    ignoreEmptyServices: false,
    ownAddresses: () => ["10.0.0.53"],
  });
  const offer = CLUSTER.offer({ view });
  const plugin = PluginTest.of(k8sExternal, directive, {
    clock,
    neighbours: [
      { name: "cache", instance: { forget: (names) => void told.push(names.map(String).sort()) } },
      { name: "kubernetes", instance: { services: [offer] } },
    ],
  });
  await plugin.start();
  const changed = () => {
    clock.advance(100);
    return told.splice(0).flat();
  };
  const addresses = async (name: string) => {
    const { rcode, answer } = await plugin.ask({ name });
    return rcode === Rcode.NOERROR ? answer.map((text) => text.split(" ").at(-1)) : rcodeName(rcode);
  };
  return { store, plugin, clock, changed, addresses };
}

/** All kinds listed, with one namespace. */
function fill(store: ClusterStore, services: readonly Service[] = []): void {
  store.replaceAll("namespaces", [{ namespace: "", name: "shop" }]);
  store.replaceAll("endpoints", []);
  store.replaceAll("services", services);
}

describe("a change in the cluster", () => {
  it("outdates the names of the service and of its external addresses, and nothing else", async () => {
    const { store, changed } = await start("k8s_external example.org example.net 192.0.2.0/24");
    fill(store);
    changed();
    store.put("services", service("web", ["192.0.2.1", "203.0.113.1"]));
    assert.deepEqual(changed(), [
      "1.2.0.192.in-addr.arpa.",
      "web.shop.example.net.",
      "web.shop.example.org.",
    ]);
    store.put("services", service("web", ["192.0.2.1", "203.0.113.1"], { type: "headless" }));
    assert.deepEqual(changed(), []);
    store.put("services", service("web", ["192.0.2.2", "203.0.113.1"]));
    assert.deepEqual(changed(), [
      "1.2.0.192.in-addr.arpa.",
      "2.2.0.192.in-addr.arpa.",
      "web.shop.example.net.",
      "web.shop.example.org.",
    ]);
    store.put("services", service("inner", []));
    store.put("endpoints", endpoints("inner", ["10.0.0.1"]));
    assert.deepEqual(changed(), []);
    store.delete("namespaces", { namespace: "", name: "shop" });
    assert.deepEqual(changed(), [
      "2.2.0.192.in-addr.arpa.",
      "shop.example.net.",
      "shop.example.org.",
      "web.shop.example.net.",
      "web.shop.example.org.",
    ]);
  });

  it("outdates the zones while the cluster is being listed", async () => {
    const { store, changed } = await start("k8s_external example.org 192.0.2.0/24");
    store.put("services", service("web", ["192.0.2.1"]));
    assert.deepEqual(changed(), ["2.0.192.in-addr.arpa.", "example.org."]);
  });

  it("outdates headless services if they are served", async () => {
    const { store, changed } = await start("k8s_external example.org {\n headless\n}");
    fill(store, [service("db", [], { type: "headless" })]);
    changed();
    store.put("endpoints", endpoints("db", ["10.0.0.1"]));
    assert.deepEqual(changed(), ["db.shop.example.org."]);
  });

  it("outdates the name of the server when its services change", async () => {
    const { store, changed, addresses } = await start("k8s_external example.org");
    fill(store, [service("dns", ["192.0.2.53"]), service("web", ["192.0.2.1"])]);
    changed();
    assert.deepEqual(await addresses("ns1.dns.example.org."), ["10.0.0.53"]);
    store.put("endpoints", endpoints("dns", ["10.0.0.53"]));
    assert.deepEqual(changed(), ["ns1.dns.example.org."]);
    assert.deepEqual(await addresses("ns1.dns.example.org."), ["192.0.2.53"]);
    store.put("services", service("web", ["192.0.2.3"]));
    assert.deepEqual(changed(), ["web.shop.example.org."]);
  });

  it("outdates load balancers whose host name is an external name", async () => {
    const { store, changed } = await start("k8s_external example.org");
    fill(store, [service("web", ["192.0.2.1"]), service("alias", ["web.shop.example.org"])]);
    changed();
    store.put("services", service("web", ["192.0.2.2"]));
    assert.deepEqual(changed(), ["alias.shop.example.org.", "web.shop.example.org."]);
  });

  it("takes effect at once in answers served before", async () => {
    const { store, addresses } = await start("k8s_external example.org");
    fill(store, [service("web", ["192.0.2.1"])]);
    assert.deepEqual(await addresses("web.shop.example.org."), ["192.0.2.1"]);
    assert.equal(await addresses("new.shop.example.org."), "NXDOMAIN");
    store.put("services", service("web", ["192.0.2.2"]));
    store.put("services", service("new", ["192.0.2.3"]));
    assert.deepEqual(await addresses("web.shop.example.org."), ["192.0.2.2"]);
    assert.deepEqual(await addresses("new.shop.example.org."), ["192.0.2.3"]);
    store.delete("services", { namespace: "shop", name: "new" });
    assert.equal(await addresses("new.shop.example.org."), "NXDOMAIN");
  });

  it("has no effect after stop", async () => {
    const { store, plugin, changed, clock } = await start("k8s_external example.org");
    fill(store);
    changed();
    store.put("services", service("web", ["192.0.2.1"]));
    store.put("services", service("api", ["192.0.2.2"]));
    await plugin.stop();
    assert.deepEqual(
      changed(),
      ["web.shop.example.org."],
      "the first was told at once, and the rest no more",
    );
    assert.equal(clock.pendingTimers, 0);
  });
});

it("before the cluster is listed, known names are answered and nothing is denied", async () => {
  const { store, plugin, addresses } = await start("k8s_external example.org");
  store.put("namespaces", { namespace: "", name: "shop" });
  store.put("services", service("web", ["192.0.2.1"]));
  assert.deepEqual(await addresses("web.shop.example.org."), ["192.0.2.1"]);
  const unknown = await plugin.ask({ name: "new.shop.example.org." });
  assert.equal(rcodeName(unknown.rcode), "SERVFAIL");
  assert.equal(unknown.authority.length, 1);
  fill(store, [service("web", ["192.0.2.1"])]);
  assert.equal(await addresses("new.shop.example.org."), "NXDOMAIN");
});

it("the serial counts changes of external addresses, and of endpoints only if they are served", async () => {
  for (const [directive, expected] of [
    ["k8s_external example.org", 1_700_000_010],
    ["k8s_external example.org {\n headless\n}", 1_700_000_020],
  ] as const) {
    const { store, plugin, clock } = await start(directive);
    fill(store, [service("db", [], { type: "headless" })]);
    clock.advance(10_000);
    store.put("services", service("web", ["192.0.2.1"]));
    clock.advance(10_000);
    store.put("endpoints", endpoints("db", ["10.0.0.1"]));
    const { answer } = await plugin.ask({ name: "example.org.", type: "SOA" });
    assert.equal(answer[0]?.split(" ")[6], `${expected}`);
  }
});
