import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { untilTrue } from "../../../test/support/until-true.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { KINDS, type Service } from "../objects/objects.ts";
import type { ReduceOptions } from "../objects/reduce.ts";
import { reducePod } from "../objects/reduce.ts";
import { reduceEndpointSlice, reduceEndpoints } from "../objects/reduce-endpoints.ts";
import { SharedValues } from "../objects/shared-values.ts";
import { ClusterStore } from "../store/store.ts";
import { SnapshotFile } from "./snapshot-file.ts";
import { snapshotObjects } from "./snapshot-objects.ts";

const reduce: ReduceOptions = {
  shared: new SharedValues(),
  zones: true,
  podLabels: true,
  externalAddresses: true,
  endpointPodNames: true,
};

let folder = "";
let clock = new FakeClock();
let errors: unknown[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "portolan-snapshot-"));
  clock = new FakeClock();
  errors = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

function makeStore(): ClusterStore {
  return new ClusterStore({ clock, kinds: KINDS });
}

function snapshotOf(store: ClusterStore, file = join(folder, "snapshot")): SnapshotFile {
  return new SnapshotFile({ file, store, clock, reduce, onError: (error) => errors.push(error) });
}

function octets(text: string): Uint8Array {
  return parseIpAddress(text) ?? new Uint8Array();
}

function service(name: string, rest: Partial<Service>): Service {
  return {
    namespace: "shop",
    name,
    type: "clusterIP",
    clusterAddresses: [],
    externalName: "",
    ports: [],
    publishNotReadyAddresses: false,
    externalAddresses: [],
    ...rest,
  };
}

function unwrap<T>(reduced: { object: T } | { problem: string }): T {
  assert.ok("object" in reduced);
  return reduced.object;
}

function fill(store: ClusterStore): void {
  store.replaceAll("namespaces", [{ namespace: "", name: "shop" }]);
  store.replaceAll("services", [
    service("web", {
      clusterAddresses: [octets("10.96.0.1"), octets("fd00::1")],
      ports: [{ name: "http", number: 80, protocol: "tcp" }],
      externalAddresses: ["192.0.2.1", "lb.example.com"],
    }),
    service("db", { type: "headless", publishNotReadyAddresses: true }),
    service("out", { type: "externalName", externalName: "www.example.com" }),
  ]);
  const slice = {
    metadata: { name: "db-1", namespace: "shop", labels: { "kubernetes.io/service-name": "db" } },
    addressType: "IPv6",
    endpoints: [
      { addresses: ["fd00::5"], hostname: "db-0", zone: "a", conditions: { ready: false } },
      { addresses: ["fd00::6"], targetRef: { kind: "Pod", name: "db-1" } },
    ],
    ports: [{ name: "sql", port: 3306, protocol: "TCP" }],
  };
  const endpoints = {
    metadata: { name: "old", namespace: "shop" },
    subsets: [
      { addresses: [{ ip: "10.0.0.1" }], ports: [{ port: 1 }] },
      { notReadyAddresses: [{ ip: "10.0.0.2" }], ports: [{ port: 2, protocol: "UDP" }] },
    ],
  };
  const pod = {
    metadata: { name: "p", namespace: "shop", labels: { app: "p" } },
    spec: { hostNetwork: true },
    status: { podIPs: [{ ip: "10.0.0.9" }, { ip: "fd00::9" }] },
  };
  store.replaceAll("endpoints", [
    unwrap(reduceEndpointSlice(slice, reduce)),
    unwrap(reduceEndpoints(endpoints, reduce)),
  ]);
  store.replaceAll("pods", [unwrap(reducePod(pod, reduce))]);
}

describe("a snapshot", () => {
  it("gives back everything that a store held, without calling it synced", async () => {
    const store = makeStore();
    const writer = snapshotOf(store);
    writer.keep();
    fill(store);
    await clock.settle();
    await writer.stop();
    const restored = makeStore();
    const loaded = await snapshotOf(restored).load();
    assert.deepEqual(loaded, { objects: 7, unusable: 0, written: "2026-01-01T00:00:00.000Z" });
    assert.deepEqual([...snapshotObjects(restored)], [...snapshotObjects(store)]);
    assert.equal(restored.isSynced, false);
    assert.deepEqual(readdirSync(folder), ["snapshot"]);
    assert.deepEqual(errors, []);
  });

  it("is not written before everything is listed, and half a minute after changes", async () => {
    const store = makeStore();
    const file = snapshotOf(store);
    file.keep();
    store.put("services", service("early", {}));
    await clock.settle(60_000);
    assert.deepEqual(readdirSync(folder), []);
    fill(store);
    await clock.settle(29_999);
    assert.deepEqual(readdirSync(folder), []);
    clock.advance(1);
    await untilTrue(() => readdirSync(folder).join() === "snapshot", {
      between: () => new Promise((resolve) => setImmediate(resolve)),
    });
    await file.stop();
    assert.equal(clock.pendingTimers, 0);
  });

  it("with lines that cannot be used is used as far as it goes", async () => {
    const path = join(folder, "snapshot");
    const lines = [
      '{"kind":"PortolanSnapshot","version":1,"written":"then"}',
      '{"kind":"Namespace","metadata":{"name":"shop"}}',
      '{"kind":"Service","metadata":{"name":"Bad Name"}}',
      '{"kind":"EndpointSet","metadata":{"name":"x","namespace":"shop"},"service":"db","groups":[{"addresses":[1,"soon","10.0.0.1"],"readyCount":"all","labels":[{}]},null]}',
      '{"kind":"EndpointSet"}',
      '{"kind":"Secret"}',
      '{"kind":"Nam',
    ];
    writeFileSync(path, lines.join("\n"));
    const store = makeStore();
    assert.deepEqual(await snapshotOf(store).load(), { objects: 2, unusable: 4, written: "then" });
  });

  for (const [title, content] of [
    ["something else", "kind: List\n"],
    ["nothing", ""],
  ] as const) {
    it(`is not ${title}`, async () => {
      writeFileSync(join(folder, "snapshot"), content);
      await assert.rejects(snapshotOf(makeStore()).load(), { name: "SnapshotError" });
    });
  }

  it("that cannot be written is mentioned once, and the old one stays", async () => {
    const path = join(folder, "gone", "snapshot");
    const store = makeStore();
    const file = snapshotOf(store, path);
    file.keep();
    fill(store);
    await clock.settle(30_000);
    store.put("services", service("more", {}));
    await clock.settle(30_000);
    await file.stop();
    assert.equal(errors.length, 1);
    assert.match(String(errors[0]), /ENOENT/);
    assert.throws(() => readFileSync(path));
  });
});
