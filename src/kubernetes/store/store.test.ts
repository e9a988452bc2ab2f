import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import fc from "fast-check";
import { formatIpv4, parseIpAddress } from "../../lib/net/ip-address.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { addressKey, formatAddressKey } from "../objects/addresses.ts";
import type { EndpointSet, Kind, Pod, Service } from "../objects/objects.ts";
import { packGroups } from "../objects/reduce-endpoints.ts";
import { NO_LABELS } from "../objects/shared-values.ts";
import { ClusterStore } from "./store.ts";
import type { StoreChange } from "./tables/store-change.ts";

function octets(text: string): Uint8Array {
  return parseIpAddress(text) ?? assert.fail(`${text} is no address`);
}

function key(text: string) {
  return addressKey(octets(text));
}

function makeService(name: string, addresses: string[], rest: Partial<Service> = {}): Service {
  return {
    namespace: "shop",
    name,
    type: addresses.length > 0 ? "clusterIP" : "headless",
    clusterAddresses: addresses.map(octets),
    externalName: "",
    ports: [{ name: "http", number: 80, protocol: "tcp" }],
    publishNotReadyAddresses: false,
    externalAddresses: [],
    ...rest,
  };
}

function ipv4Texts(packed: Uint8Array): string[] {
  return Array.from({ length: packed.length / 4 }, (_, index) => formatIpv4(packed, index * 4));
}

/** `10.0.0.1=db-0` bears a hostname, `10.0.0.1!` is not ready. */
function makeSet(name: string, service: string, endpoints: string[]): EndpointSet {
  const addresses = endpoints.map((text) => {
    const [address = "", label = ""] = text.replace("!", "").split("=");
    return { octets: octets(address), ready: !text.endsWith("!"), label, zone: "" };
  });
  return { namespace: "shop", name, service, groups: packGroups(addresses, []) };
}

function makePod(name: string, addresses: string[]): Pod {
  return { namespace: "shop", name, addresses: addresses.map(key), labels: NO_LABELS };
}

function readable(change: StoreChange): Record<string, unknown> {
  const sorted = (list: readonly string[]) => [...new Set(list)].sort();
  return {
    services: sorted(change.services),
    external: sorted(change.externalServices),
    externalAddresses: sorted(change.externalAddresses.map(formatAddressKey)),
    addresses: sorted(change.addresses.map(formatAddressKey)),
    namespaces: sorted(change.namespaces),
    pods: sorted(change.podAddresses.map(formatAddressKey)),
  };
}

const nothing = {
  services: [],
  external: [],
  externalAddresses: [],
  addresses: [],
  namespaces: [],
  pods: [],
};

describe("ClusterStore", () => {
  let clock: FakeClock;
  let store: ClusterStore;
  let changes: StoreChange[];

  beforeEach(() => {
    clock = new FakeClock({ wallTime: 1_700_000_000_999 });
    store = new ClusterStore({ clock, kinds: ["namespaces", "services", "endpoints", "pods"] });
    changes = [];
  });

  function listen(): void {
    store.subscribe((change) => changes.push(change));
  }

  function takeChange(): Record<string, unknown> | undefined {
    assert.ok(changes.length <= 1, "one step made several changes");
    const change = changes.pop();
    return change && readable(change);
  }

  it("finds a service by name and by address, and forgets it", () => {
    store.put("services", makeService("web", ["10.96.20.5", "fd00::5"]));
    const entry = store.services.entry("web.shop");
    assert.equal(entry?.service?.type, "clusterIP");
    assert.deepEqual(store.services.servicesAt(key("fd00::5")), [entry]);
    store.put("services", makeService("web", ["10.96.20.6"]));
    assert.deepEqual(store.services.servicesAt(key("10.96.20.5")), []);
    assert.deepEqual(store.services.servicesAt(key("10.96.20.6")), [entry]);
    store.delete("services", { namespace: "shop", name: "web" });
    assert.equal(store.services.entry("web.shop"), undefined);
    assert.equal(store.services.namespace("shop"), undefined);
    assert.deepEqual(store.services.servicesAt(key("10.96.20.6")), []);
  });

  it("gathers the endpoints of all slices, each address once, ready ones only", () => {
    store.put("services", makeService("db", []));
    store.put("endpoints", makeSet("db-1", "db", ["10.0.0.1=db-0", "10.0.0.2=db-1", "10.0.0.3=db-2!"]));
    store.put("endpoints", makeSet("db-2", "db", ["10.0.0.1=db-0", "10.0.0.4"]));
    const endpoints = store.services.entry("db.shop")?.endpoints;
    assert.ok(endpoints);
    const addresses = ipv4Texts(endpoints.ipv4);
    assert.deepEqual(addresses, ["10.0.0.1", "10.0.0.2", "10.0.0.4"]);
    assert.equal(endpoints.ipv6.length, 0);
    assert.equal(endpoints.labelled("db-0").length, 2);
    assert.equal(endpoints.labelled("db-2").length, 0);
  });

  it("publishes endpoints that are not ready where the service says so", () => {
    store.put("services", makeService("early", [], { publishNotReadyAddresses: true }));
    store.put("endpoints", makeSet("early-1", "early", ["10.0.0.1=early-0!"]));
    assert.equal(store.services.entry("early.shop")?.endpoints.ipv4.length, 4);
    assert.equal(store.services.entry("early.shop")?.endpoints.labelled("early-0").length, 1);
    store.put("services", makeService("early", []));
    assert.ok(store.services.entry("early.shop")?.endpoints.isEmpty);
  });

  it("moves a slice to another service", () => {
    store.put("endpoints", makeSet("s-1", "one", ["10.0.0.1"]));
    store.put("endpoints", makeSet("s-1", "two", ["10.0.0.1"]));
    assert.equal(store.services.entry("one.shop"), undefined);
    const sets = store.services.endpointSetsAt(key("10.0.0.1"));
    assert.deepEqual(
      sets.map(({ service }) => service),
      ["two"],
    );
  });

  it("drops a pod that has lost its address", () => {
    store.put("pods", makePod("a", ["10.0.0.1", "fd00::1"]));
    store.put("pods", makePod("b", ["10.0.0.1"]));
    assert.deepEqual(
      store.pods.at(key("10.0.0.1")).map(({ name }) => name),
      ["a", "b"],
    );
    store.put("pods", makePod("a", []));
    assert.deepEqual(
      store.pods.at(key("10.0.0.1")).map(({ name }) => name),
      ["b"],
    );
    assert.deepEqual(store.pods.at(key("fd00::1")), []);
  });

  describe("tells what a change touched:", () => {
    beforeEach(() => {
      store.put("services", makeService("web", ["10.96.0.5"]));
      store.put("services", makeService("db", []));
      store.put("endpoints", makeSet("db-1", "db", ["10.0.0.1=db-0", "10.0.0.2=db-1", "10.0.0.3!"]));
      listen();
    });

    it("an update that says nothing new touches nothing", () => {
      store.put("services", makeService("web", ["10.96.0.5"]));
      store.put("endpoints", makeSet("db-1", "db", ["10.0.0.1=db-0", "10.0.0.2=db-1", "10.0.0.3!"]));
      assert.equal(takeChange(), undefined);
    });

    it("a new service its name and its address", () => {
      store.put("services", makeService("new", ["10.96.0.9"]));
      assert.deepEqual(takeChange(), { ...nothing, services: ["new.shop"], addresses: ["10.96.0.9"] });
    });

    it("another port the name alone", () => {
      store.put("services", makeService("web", ["10.96.0.5"], { ports: [] }));
      assert.deepEqual(takeChange(), { ...nothing, services: ["web.shop"] });
    });

    it("a pod that became ready the service and that pod's address", () => {
      store.put("endpoints", makeSet("db-1", "db", ["10.0.0.1=db-0", "10.0.0.2=db-1", "10.0.0.3"]));
      assert.deepEqual(takeChange(), { ...nothing, services: ["db.shop"], addresses: ["10.0.0.3"] });
    });

    it("a replaced pod both addresses", () => {
      store.put("endpoints", makeSet("db-1", "db", ["10.0.0.1=db-0", "10.0.0.9=db-1", "10.0.0.3!"]));
      assert.deepEqual(takeChange(), {
        ...nothing,
        services: ["db.shop"],
        addresses: ["10.0.0.2", "10.0.0.9"],
      });
    });

    it("a deleted service the reverse names of its endpoints too", () => {
      store.delete("services", { namespace: "shop", name: "db" });
      const addresses = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
      assert.deepEqual(takeChange(), { ...nothing, services: ["db.shop"], addresses });
    });

    it("a service that became an alias the reverse names of its endpoints too", () => {
      store.put("services", makeService("db", [], { type: "externalName", externalName: "db.example.com" }));
      const addresses = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
      assert.deepEqual(takeChange(), { ...nothing, services: ["db.shop"], addresses });
    });

    it("a namespace everything in it", () => {
      store.put("namespaces", { namespace: "", name: "shop" });
      const addresses = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.96.0.5"];
      assert.deepEqual(takeChange(), { ...nothing, namespaces: ["shop"], addresses });
    });

    it("external addresses apart from the others", () => {
      store.put("services", makeService("web", ["10.96.0.5"], { externalAddresses: ["192.0.2.1"] }));
      const names = { ...nothing, external: ["web.shop"] };
      assert.deepEqual(takeChange(), { ...names, externalAddresses: ["192.0.2.1"] });
      const entry = store.services.entry("web.shop");
      assert.deepEqual(store.services.external.at(key("192.0.2.1")), [entry]);
      const externalAddresses = ["192.0.2.2", "lb.example.com"];
      store.put("services", makeService("web", ["10.96.0.5"], { externalAddresses }));
      assert.deepEqual(takeChange(), { ...names, externalAddresses: ["192.0.2.1", "192.0.2.2"] });
      assert.deepEqual(store.services.external.at(key("192.0.2.1")), []);
      assert.deepEqual(
        Array.from(store.services.external.named(), ({ name }) => name),
        ["web"],
      );
      store.put("namespaces", { namespace: "", name: "shop" });
      assert.deepEqual(takeChange()?.externalAddresses, ["192.0.2.2"]);
    });

    it("a pod its addresses", () => {
      store.put("pods", makePod("a", ["10.0.0.7"]));
      assert.deepEqual(takeChange(), { ...nothing, pods: ["10.0.0.7"] });
    });
  });

  it("stops calling back after the end of a subscription", () => {
    const end = store.subscribe((change) => changes.push(change));
    end();
    store.put("services", makeService("web", ["10.96.0.5"]));
    assert.equal(changes.length, 0);
  });

  it("gives a change after a transfer another serial, within the same second too", () => {
    store.put("services", makeService("web", ["10.96.0.5"]));
    const { serial } = store;
    store.put("services", makeService("web", ["10.96.0.6"]));
    assert.equal(store.serial, serial);
    store.sealSerial(serial);
    store.put("services", makeService("web", ["10.96.0.7"]));
    assert.equal(store.serial, serial + 1);
    store.put("services", makeService("web", ["10.96.0.8"]));
    assert.equal(store.serial, serial + 1);
  });

  it("counts serials by what changed, and never backwards", () => {
    assert.equal(store.serial, 0);
    store.put("services", makeService("web", ["10.96.0.5"], { externalAddresses: ["192.0.2.1"] }));
    assert.equal(store.serial, 1_700_000_000);
    assert.equal(store.externalSerial, 1_700_000_000);
    clock.advance(5000);
    store.put("services", makeService("web", ["10.96.0.5"], { externalAddresses: ["192.0.2.1"] }));
    assert.equal(store.serial, 1_700_000_000);
    store.put("services", makeService("web", ["10.96.0.5"]));
    assert.equal(store.serial, 1_700_000_000);
    assert.equal(store.externalSerial, 1_700_000_005);
    clock.setWallTime(1_600_000_000_000);
    store.delete("services", { namespace: "shop", name: "web" });
    assert.equal(store.serial, 1_700_000_000);
  });

  it("is synced when every kind has been listed, and knows how old its data is", async () => {
    const kinds: Kind[] = ["namespaces", "services", "endpoints", "pods"];
    assert.equal(store.age("services"), undefined);
    for (const kind of kinds) {
      assert.ok(!store.isSynced);
      store.replaceAll(kind, []);
    }
    assert.ok(store.isSynced);
    await store.whenSynced();
    assert.deepEqual(store.missingKinds, []);
    clock.advance(30_000);
    assert.equal(store.age("services"), 30_000);
    store.confirm("services");
    assert.equal(store.age("services"), 0);
  });

  it("applies a listing in place: what is the same is not told anew", () => {
    store.put("services", makeService("web", ["10.96.0.5"]));
    store.put("services", makeService("old", ["10.96.0.6"]));
    listen();
    store.replaceAll("services", [makeService("web", ["10.96.0.5"]), makeService("new", ["10.96.0.7"])]);
    assert.ok(store.services.entry("web.shop")?.hasService);
    assert.equal(store.services.entry("old.shop"), undefined);
    assert.deepEqual(
      changes.flatMap(({ services }) => services),
      ["new.shop", "old.shop"],
    );
  });

  it("completes a long listing in turns, and keeps what comes meanwhile", async () => {
    const count = 500;
    for (let n = 0; n < count; n++) store.put("services", makeService(`old-${n}`, []));
    const listing = store.relist("services");
    listing.put(makeService("web", ["10.96.0.5"]));
    const completing = listing.commitInTurns();
    const left = [...store.services.services()].length;
    assert.ok(left > count / 2, `${left} after the first turn`);
    assert.ok(!store.isKindSynced("services"));
    store.put("services", makeService("meanwhile", ["10.96.0.6"]));
    store.put("services", makeService(`old-${count - 1}`, ["10.96.0.7"]));
    await completing;
    assert.deepEqual(Array.from(store.services.services(), ({ name }) => name).sort(), [
      "meanwhile",
      `old-${count - 1}`,
      "web",
    ]);
    assert.ok(store.isKindSynced("services"));
  });

  it("keeps everything when a listing breaks off", () => {
    store.put("services", makeService("web", ["10.96.0.5"]));
    store.relist("services").put(makeService("new", ["10.96.0.7"]));
    assert.ok(store.services.entry("web.shop")?.service);
    assert.ok(!store.isKindSynced("services"));
  });
});

describe("any sequence of changes", () => {
  const small = fc.integer({ min: 1, max: 4 });
  const address = small.map((last) => `10.0.0.${last}`);
  const endpoint = fc
    .tuple(address, fc.constantFrom("", "!", "=a", "=b", "=a!"))
    .map((parts) => parts.join(""));
  const name = fc.constantFrom("a", "b", "c");
  type Step = (store: ClusterStore) => void;
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.tuple(name, fc.array(address, { maxLength: 2 }), fc.boolean()).map(
      ([service, addresses, publishNotReadyAddresses]): Step =>
        (store) =>
          store.put("services", makeService(service, [...new Set(addresses)], { publishNotReadyAddresses })),
    ),
    fc.tuple(small, name, fc.array(endpoint, { maxLength: 4 })).map(
      ([number, service, endpoints]): Step =>
        (store) =>
          store.put("endpoints", makeSet(`set-${number}`, service, endpoints)),
    ),
    fc.tuple(name, fc.array(address, { maxLength: 2 })).map(
      ([pod, addresses]): Step =>
        (store) =>
          store.put("pods", makePod(pod, [...new Set(addresses)])),
    ),
    fc.constant<Step>((store) => store.put("namespaces", { namespace: "", name: "shop" })),
    fc.constant<Step>((store) => store.delete("namespaces", { namespace: "", name: "shop" })),
    name.map(
      (service): Step =>
        (store) =>
          store.delete("services", { namespace: "shop", name: service }),
    ),
    name.map(
      (pod): Step =>
        (store) =>
          store.delete("pods", { namespace: "shop", name: pod }),
    ),
    small.map(
      (number): Step =>
        (store) =>
          store.delete("endpoints", { namespace: "shop", name: `set-${number}` }),
    ),
  );

  function makeStore(): ClusterStore {
    return new ClusterStore({ clock: new FakeClock(), kinds: [] });
  }

  /** All that a query can see, in one text for each name and address. */
  function picture(store: ClusterStore): Map<string, string> {
    const seen = new Map<string, string>();
    for (const service of ["a", "b", "c"]) {
      const entry = store.services.entry(`${service}.shop`);
      if (entry === undefined) continue;
      const { endpoints } = entry;
      const addresses = ipv4Texts(endpoints.ipv4).sort();
      const labels = ["a", "b"].map((label) => endpoints.labelled(label).length);
      const kept = entry.service && {
        ...entry.service,
        clusterAddresses: entry.service.clusterAddresses.map(String).sort(),
      };
      seen.set(`${service}.shop`, JSON.stringify([kept, addresses, labels, entry.namespace.exists]));
    }
    for (let last = 1; last <= 4; last++) {
      const at = key(`10.0.0.${last}`);
      const services = store.services.servicesAt(at).map((entry) => entry.key);
      const sets = store.services.endpointSetsAt(at).map((set) => `${set.name} of ${set.service}`);
      const pods = store.pods.at(at).map((pod) => pod.name);
      seen.set(`10.0.0.${last}`, JSON.stringify([services.sort(), sets.sort(), pods.sort()]));
    }
    seen.set("namespace", String(store.services.namespace("shop")?.exists ?? false));
    return seen;
  }

  it("leaves what a fresh store given the final objects holds", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const store = makeStore();
        for (const apply of steps) apply(store);
        const fresh = makeStore();
        fresh.replaceAll("namespaces", store.services.existingNamespaces());
        fresh.replaceAll("services", store.services.services());
        fresh.replaceAll("endpoints", store.services.endpointSets());
        fresh.replaceAll("pods", store.pods.pods());
        assert.deepEqual(picture(store), picture(fresh));
        assert.equal(store.services.endpointAddressCount, fresh.services.endpointAddressCount);
        for (const kind of ["namespaces", "services", "endpoints", "pods"] as const)
          store.replaceAll(kind, []);
        assert.deepEqual(picture(store), picture(makeStore()));
        assert.equal(store.services.endpointAddressCount, 0);
      }),
      { numRuns: 300 },
    );
  });

  it("reports every name and address that it changes", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        const store = makeStore();
        const touched = new Set<string>();
        store.subscribe((change) => {
          for (const service of change.services) touched.add(service);
          for (const at of [...change.addresses, ...change.podAddresses]) touched.add(formatAddressKey(at));
          if (change.namespaces.length > 0)
            for (const each of ["namespace", "a.shop", "b.shop", "c.shop"]) touched.add(each);
        });
        for (const apply of steps) {
          const before = picture(store);
          touched.clear();
          apply(store);
          const after = picture(store);
          for (const name of new Set([...before.keys(), ...after.keys()])) {
            if (before.get(name) !== after.get(name))
              assert.ok(touched.has(name), `${name} changed unnoticed`);
          }
        }
      }),
      { numRuns: 300 },
    );
  });
});
