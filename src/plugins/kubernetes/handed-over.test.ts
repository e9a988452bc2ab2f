import assert from "node:assert/strict";
import { it } from "node:test";
import type { Kind, Service } from "../../kubernetes/objects/objects.ts";
import { ClusterStore } from "../../kubernetes/store/store.ts";
import { FakeClock } from "../../lib/clock.ts";
import type { PlacedPlugin } from "../../plugin/index.ts";
import { CLUSTER_KNOWLEDGE, takeOver } from "./handed-over.ts";

const clock = new FakeClock();

function store(kinds: readonly Kind[] = ["namespaces", "services"]): ClusterStore {
  return new ClusterStore({ clock, kinds });
}

function service(name: string, last: number): Service {
  return {
    namespace: "default",
    name,
    type: "clusterIP",
    clusterAddresses: [Uint8Array.of(10, 96, 0, last)],
    externalName: "",
    ports: [],
    publishNotReadyAddresses: false,
    externalAddresses: [],
  };
}

/** The plugin in force, which has listed its services and nothing else. */
function inForce(former: ClusterStore, source: string): PlacedPlugin[] {
  const offer = CLUSTER_KNOWLEDGE.offer({ stores: { store: former }, source: () => source });
  return [
    { name: "cache", instance: {} },
    { name: "kubernetes", instance: { services: [offer] } },
  ];
}

function formerStore(): ClusterStore {
  const former = store();
  former.replaceAll("services", [service("web", 1), service("gone", 2)]);
  return former;
}

function lastOctets(of: ClusterStore): Record<string, number | undefined> {
  return Object.fromEntries(of.services.services().map((each) => [each.name, each.clusterAddresses[0]?.[3]]));
}

it("takes over what the other has listed, with its age, and leaves the rest awaited", () => {
  const former = formerStore();
  clock.advance(7000);
  const own = store();
  assert.equal(takeOver({ stores: { store: own }, source: () => "api" }, inForce(former, "api")), true);
  assert.deepEqual(lastOctets(own), { web: 1, gone: 2 });
  assert.equal(own.age("services"), 7000);
  assert.deepEqual(own.missingKinds, ["namespaces"]);
  assert.equal(own.services.services()[0], former.services.services()[0], "objects are shared, not copied");
});

it("keeps what a list that goes on has brought, and lets its end delete what is gone", () => {
  const own = store();
  const listing = own.relist("services");
  listing.put(service("web", 9));
  takeOver({ stores: { store: own }, source: () => "api" }, inForce(formerStore(), "api"));
  assert.deepEqual(lastOctets(own), { web: 9, gone: 2 });
  listing.commit();
  assert.deepEqual(lastOctets(own), { web: 9 });
});

it("takes over nothing that is listed already, of another source, or where there is no API", () => {
  const own = store();
  own.replaceAll("services", []);
  assert.equal(
    takeOver({ stores: { store: own }, source: () => "api" }, inForce(formerStore(), "api")),
    false,
  );
  assert.deepEqual(lastOctets(own), {});
  for (const [mine, other] of [
    ["api", "another"],
    ["", ""],
  ] as const) {
    const fresh = store();
    const knowledge = { stores: { store: fresh }, source: () => mine };
    assert.equal(takeOver(knowledge, inForce(formerStore(), other)), false);
    assert.deepEqual(fresh.missingKinds, ["namespaces", "services"]);
  }
});
