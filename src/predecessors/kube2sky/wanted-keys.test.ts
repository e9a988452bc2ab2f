import assert from "node:assert/strict";
import { test } from "node:test";
import { Name } from "../../dns/name.ts";
import { formatServiceItem } from "../../etcd/skydns/service-item.ts";
import { reduceService } from "../../kubernetes/objects/reduce.ts";
import { SharedValues } from "../../kubernetes/objects/shared-values.ts";
import { ClusterStore } from "../../kubernetes/store/store.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { labelOf, WantedKeys } from "./wanted-keys.ts";

for (const [host, label] of [
  ["10.0.0.1", "f488b1a2"],
  ["1.2.3.4", "b882ad2c"],
] as const) {
  test(`${host} has the label ${label}`, () =>
    assert.equal(labelOf(formatServiceItem({ host, priority: 10, weight: 10, ttl: 30 })), label));
}

test("a service with ports, a headless one, and an ExternalName", () => {
  const store = new ClusterStore({ clock: new FakeClock(), kinds: ["services", "endpoints"] });
  const service = (name: string, spec: object) => {
    const reduced = reduceService(
      { metadata: { namespace: "default", name }, spec },
      { shared: new SharedValues() },
    );
    assert.ok("object" in reduced);
    store.put("services", reduced.object);
  };
  service("web", {
    clusterIP: "10.0.0.1",
    ports: [{ name: "http", port: 80, protocol: "TCP" }, { port: 81 }],
  });
  service("db", { clusterIP: "None", ports: [{ name: "sql", port: 3306 }] });
  service("ext", { type: "ExternalName", externalName: "www.example.com" });
  const port = { name: "sql", number: 3306, protocol: "tcp" } as const;
  store.put("endpoints", {
    namespace: "default",
    name: "db-1",
    service: "db",
    groups: [
      {
        addressLength: 4,
        addresses: Uint8Array.from([172, 16, 0, 1, 1, 2, 3, 4, 172, 16, 0, 3]),
        count: 3,
        readyCount: 2,
        labels: ["db-0", "", ""],
        zones: undefined,
        ports: [port],
      },
    ],
  });
  const keys = new WantedKeys("/skydns", Name.parse("cluster.local."));
  const of = (name: string) => {
    const entry = store.services.entry(`${name}.default`);
    assert.ok(entry !== undefined);
    return Object.fromEntries(keys.ofService(entry));
  };
  const common = { priority: 10, weight: 10, ttl: 30 };
  const text = (value: object) => JSON.stringify({ ...value, ...common });
  const web = "/skydns/local/cluster/svc/default/web";
  assert.deepEqual(of("web"), {
    [`${web}/f488b1a2`]: text({ host: "10.0.0.1" }),
    [`${web}/_tcp/_http/f488b1a2`]: text({ host: "web.default.svc.cluster.local.", port: 80 }),
  });
  const db = "/skydns/local/cluster/svc/default/db";
  assert.deepEqual(of("db"), {
    [`${db}/db-0`]: text({ host: "172.16.0.1" }),
    [`${db}/_tcp/_sql/db-0`]: text({ host: "db-0.db.default.svc.cluster.local.", port: 3306 }),
    [`${db}/b882ad2c`]: text({ host: "1.2.3.4" }),
    [`${db}/_tcp/_sql/b882ad2c`]: text({ host: "b882ad2c.db.default.svc.cluster.local.", port: 3306 }),
  });
  assert.deepEqual(of("ext"), {});
});
