import assert from "node:assert/strict";
import { test } from "node:test";
import { Name } from "../../dns/name.ts";
import { addressKey } from "../../kubernetes/objects/addresses.ts";
import type { Service } from "../../kubernetes/objects/objects.ts";
import { ClusterStore } from "../../kubernetes/store/store.ts";
import { reverseName } from "../../kubernetes/store/tables/reverse-names.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { TouchedNames } from "./touched-names.ts";

function service(name: string, values: Partial<Service> = {}): Service {
  return {
    namespace: "shop",
    name,
    type: "clusterIP",
    clusterAddresses: [],
    externalName: "",
    ports: [],
    publishNotReadyAddresses: false,
    externalAddresses: [],
    ...values,
  };
}

function watching(zones: readonly string[]): { clock: FakeClock; store: ClusterStore; told: string[][] } {
  const clock = new FakeClock();
  const store = new ClusterStore({ clock, kinds: ["namespaces", "services", "endpoints"] });
  for (const kind of store.kinds) store.markListed(kind);
  const told: string[][] = [];
  const touched = new TouchedNames({
    store,
    zones: zones.map((zone) => Name.parse(zone)),
    clock,
    forget: (names) => told.push(names.map(String).sort()),
  });
  store.subscribe((change) => touched.add(change));
  return { clock, store, told };
}

function address(text: string): Uint8Array {
  const octets = parseIpAddress(text);
  assert.ok(octets !== undefined);
  return octets;
}

test("a changed service outdates its name in each zone, its address, and nothing else", () => {
  const { clock, store, told } = watching(["cluster.local.", "k8s.example.", "in-addr.arpa."]);
  store.put("namespaces", { namespace: "", name: "shop" });
  clock.advance(10);
  told.length = 0;
  store.put("services", service("web", { clusterAddresses: [address("10.96.0.7")] }));
  clock.advance(10);
  assert.deepEqual(told, [
    ["7.0.96.10.in-addr.arpa.", "web.shop.svc.cluster.local.", "web.shop.svc.k8s.example."],
  ]);
});

test("the first of several changes is reported at once and the rest together, a namespace with all names below it", () => {
  const { clock, store, told } = watching(["cluster.local."]);
  store.put(
    "services",
    service("alias", { type: "externalName", externalName: "web.shop.svc.cluster.local" }),
  );
  clock.advance(10);
  told.length = 0;
  store.put("services", service("web"));
  store.put("services", service("api"));
  store.put("namespaces", { namespace: "", name: "blog" });
  clock.advance(10);
  assert.deepEqual(told, [
    ["alias.shop.svc.cluster.local.", "web.shop.svc.cluster.local."],
    [
      "alias.shop.svc.cluster.local.",
      "api.shop.svc.cluster.local.",
      "blog.pod.cluster.local.",
      "blog.svc.cluster.local.",
    ],
  ]);
  assert.equal(clock.pendingTimers, 0);
});

test("a change after a pause is reported at once, and the changes that follow soon after", () => {
  const { clock, store, told } = watching(["cluster.local."]);
  clock.advance(1000);
  store.put("services", service("web"));
  assert.deepEqual(told, [["web.shop.svc.cluster.local."]]);
  store.put("services", service("api"));
  clock.advance(0.5);
  assert.equal(told.length, 1);
  clock.advance(0.5);
  assert.deepEqual(told[1], ["api.shop.svc.cluster.local."]);
});

test("while lists arrive, whole zones are outdated", () => {
  const clock = new FakeClock();
  const store = new ClusterStore({ clock, kinds: ["services"] });
  const told: string[][] = [];
  const zones = ["cluster.local.", "in-addr.arpa."].map((zone) => Name.parse(zone));
  const touched = new TouchedNames({ store, zones, clock, forget: (names) => told.push(names.map(String)) });
  store.subscribe((change) => touched.add(change));
  store.put("services", service("web", { clusterAddresses: [address("10.96.0.7")] }));
  clock.advance(0);
  store.put("services", service("api"));
  clock.advance(99);
  assert.deepEqual(told, [["cluster.local.", "in-addr.arpa."]]);
  store.markListed("services");
  clock.advance(1);
  assert.equal(told.length, 2);
  store.put("services", service("api", { publishNotReadyAddresses: true }));
  clock.advance(10);
  assert.deepEqual(told[2], ["api.shop.svc.cluster.local."]);
});

test("a flood of changes outdates the zones", () => {
  const { clock, store, told } = watching(["cluster.local.", "ip6.arpa."]);
  for (let n = 0; n < 2_500; n++) store.put("services", service(`s${n}`));
  clock.advance(10);
  assert.deepEqual(told, [["s0.shop.svc.cluster.local."], ["cluster.local.", "ip6.arpa."]]);
});

test("reverse names of both families", () => {
  assert.equal(`${reverseName(addressKey(address("10.96.0.7")))}`, "7.0.96.10.in-addr.arpa.");
  assert.equal(`${reverseName(addressKey(address("255.100.99.0")))}`, "0.99.100.255.in-addr.arpa.");
  assert.equal(
    `${reverseName(addressKey(address("fd00:10:96::7")))}`,
    "7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.6.9.0.0.0.1.0.0.0.0.d.f.ip6.arpa.",
  );
});

test("reverse names outside the zones are not reported, and those of a whole family need no check", () => {
  const put = (zones: readonly string[]): string[] => {
    const { clock, store, told } = watching(zones);
    store.put("namespaces", { namespace: "", name: "shop" });
    clock.advance(100);
    told.length = 0;
    const clusterAddresses = ["10.96.0.7", "192.0.2.1", "2001:db8::1", "fd00::1"].map(address);
    store.put("services", service("web", { clusterAddresses }));
    clock.advance(100);
    return told.flat().sort();
  };
  const reverse = (text: string): string => String(reverseName(addressKey(address(text))));
  assert.deepEqual(
    put(["96.10.in-addr.arpa.", "0.0.d.f.ip6.arpa."]),
    [...["fd00::1", "10.96.0.7"].map(reverse)].sort(),
  );
  const all = ["10.96.0.7", "192.0.2.1", "2001:db8::1", "fd00::1"].map(reverse).sort();
  assert.deepEqual(put(["in-addr.arpa.", "ip6.arpa."]), all);
});

test("a changed alias is reported once", () => {
  const { clock, store, told } = watching(["cluster.local.", "k8s.example."]);
  store.put("namespaces", { namespace: "", name: "shop" });
  clock.advance(100);
  told.length = 0;
  store.put("services", service("docs", { type: "externalName", externalName: "example.org" }));
  clock.advance(100);
  assert.deepEqual(told, [["docs.shop.svc.cluster.local.", "docs.shop.svc.k8s.example."]]);
});
