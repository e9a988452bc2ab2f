/** Copies of zones while the cluster changes. */
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { Name } from "../../dns/name.ts";
import { formatRecord } from "../../dns/resource-record.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import {
  type TransferSource,
  ZoneNotLoadedError,
  type ZoneTransfer,
} from "../../plugin/contract/transfer.ts";
import { ExternalAnswers } from "../external/external-answers.ts";
import { externalTransfers } from "../external/external-transfers.ts";
import type { Service } from "../objects/objects.ts";
import { packGroups } from "../objects/reduce-endpoints.ts";
import { NO_LABELS } from "../objects/shared-values.ts";
import { ClusterStore } from "../store/store.ts";
import { ClusterAnswers } from "./cluster-answers.ts";
import { clusterTransfers } from "./cluster-transfers.ts";

const octets = (text: string) => parseIpAddress(text) ?? assert.fail(text);

let clock: FakeClock;
let store: ClusterStore;
let internal: TransferSource;
let external: TransferSource;
let headless: TransferSource;

beforeEach(() => {
  clock = new FakeClock({ wallTime: 1_700_000_000_000 });
  store = new ClusterStore({ clock, kinds: ["namespaces", "services", "endpoints"] });
  const zones = [Name.parse("cluster.local.")];
  const shared = { ttl: 5, ownAddresses: () => [] };
  const answers = new ClusterAnswers({
    ...shared,
    store,
    zones,
    pods: "disabled",
    ignoreEmptyServices: false,
    zonal: false,
  });
  const outside = {
    cluster: answers.view,
    zones: [Name.parse("example.org.")],
    apex: Name.parse("dns"),
    ttl: 5,
  };
  internal = clusterTransfers(answers, clock);
  external = externalTransfers(new ExternalAnswers({ ...outside, headless: false }), clock);
  headless = externalTransfers(new ExternalAnswers({ ...outside, headless: true }), clock);
  store.replaceAll("namespaces", [{ namespace: "", name: "shop" }]);
  store.replaceAll("endpoints", []);
  store.replaceAll("services", []);
});

function put(name: string, rest: Partial<Service>): void {
  store.put("services", {
    namespace: "shop",
    name,
    type: "clusterIP",
    clusterAddresses: [],
    externalName: "",
    ports: [],
    publishNotReadyAddresses: false,
    externalAddresses: [],
    ...rest,
  });
}

function putEndpoints(service: string, ...addresses: readonly string[]): void {
  const list = addresses.map((text) => ({ octets: octets(text), ready: true, label: "", zone: "" }));
  store.put("endpoints", { namespace: "shop", name: `${service}-1`, service, groups: packGroups(list, []) });
}

function copy(source: TransferSource): ZoneTransfer {
  const [apex = Name.root] = source.transferZones;
  return source.transfer(apex) ?? assert.fail("not transferred");
}

/** Owners and data of the address records. */
function addressesIn(transfer: ZoneTransfer): string[] {
  return Array.from(transfer.records(), (record) => formatRecord(record).split(/\s+/))
    .filter(([, , , type]) => type === "A")
    .map(([owner = "", , , , data = ""]) => `${owner.split(".").slice(0, 2).join(".")} ${data}`);
}

describe("a copy of a zone", () => {
  it("stays as it was while the cluster changes", () => {
    put("a", { clusterAddresses: [octets("10.96.0.1")], externalAddresses: ["192.0.2.1"] });
    put("db", { type: "headless" });
    putEndpoints("db", "10.0.0.1");
    const copies = [internal, external, headless].map(copy);
    const before = copies.map(addressesIn);
    assert.deepEqual(before[0], ["a.shop 10.96.0.1", "db.shop 10.0.0.1", "10-0-0-1.db 10.0.0.1"]);
    assert.deepEqual(before[1], ["a.shop 192.0.2.1"]);
    put("a", { clusterAddresses: [octets("10.96.0.2")], externalAddresses: ["192.0.2.2"] });
    put("b", { clusterAddresses: [octets("10.96.0.3")], externalAddresses: ["192.0.2.3"] });
    putEndpoints("db", "10.0.0.2");
    store.delete("namespaces", { namespace: "", name: "shop" });
    assert.deepEqual(copies.map(addressesIn), before);
    assert.deepEqual([internal, external, headless].map(copy).map(addressesIn), [[], [], []]);
  });

  it("goes out of a store that another thread writes to, service by service where that changes faster than it is read", () => {
    put("a", { clusterAddresses: [octets("10.96.0.1")] });
    put("b", { clusterAddresses: [octets("10.96.0.2")] });
    put("db", { type: "headless" });
    putEndpoints("db", "10.0.0.1");
    const kinds = ["namespaces", "services", "endpoints"] as const;
    const replica = new ClusterStore({ clock, kinds, replica: true });
    const shared = store.share();
    replica.join(shared);
    for (const kind of kinds) replica.markListed(kind);
    const answers = new ClusterAnswers({
      ...{ store: replica, ttl: 5, ownAddresses: () => [], pods: "disabled", zonal: false },
      ...{ zones: [Name.parse("cluster.local.")], ignoreEmptyServices: false },
    });
    const source = clusterTransfers(answers, clock);
    const expected = ["a.shop 10.96.0.1", "b.shop 10.96.0.2", "db.shop 10.0.0.1", "10-0-0-1.db 10.0.0.1"];
    assert.deepEqual(addressesIn(copy(source)), expected);
    const { view } = answers;
    const shows = view.shows.bind(view);
    let left = 70;
    view.shows = (entry) => {
      if (left-- > 0) put("noise", { ports: [{ name: "", number: 1 + left, protocol: "tcp" }] });
      return shows(entry);
    };
    assert.deepEqual(addressesIn(copy(source)), expected);
    assert.ok(left < 0, "it was read in peace in the end");
    // A thread that is in the midst of a change.
    Atomics.add(new Int32Array(shared.columns.control), 0, 1);
    assert.throws(() => copy(source), ZoneNotLoadedError);
  });

  it("has a serial that no later state has, within the same second too", () => {
    for (const source of [internal, external, headless]) {
      const serials = new Set<number>();
      for (let last = 1; last < 5; last++) {
        put("a", { clusterAddresses: [octets(`10.96.0.${last}`)], externalAddresses: [`192.0.2.${last}`] });
        serials.add(copy(source).soa.data.serial);
        serials.add(copy(source).soa.data.serial);
      }
      assert.equal(serials.size, 4);
    }
  });

  it("is told of when it is out of date, and not after the end", () => {
    const told: string[] = [];
    const ends = [internal, external, headless].map((source, index) =>
      source.onZoneChange((apex) => told.push(`${index} ${apex}`)),
    );
    const changed = () => [...new Set(told.splice(0))].sort();
    put("a", { clusterAddresses: [octets("10.96.0.1")] });
    assert.deepEqual(changed(), ["0 cluster.local.", "2 example.org."]);
    put("a", { clusterAddresses: [octets("10.96.0.1")], externalAddresses: ["192.0.2.1"] });
    assert.deepEqual(changed(), ["1 example.org.", "2 example.org."]);
    putEndpoints("a", "10.0.0.1");
    assert.deepEqual(changed(), ["0 cluster.local.", "2 example.org."]);
    store.delete("namespaces", { namespace: "", name: "shop" });
    assert.deepEqual(changed(), ["0 cluster.local.", "1 example.org.", "2 example.org."]);
    store.put("pods", { namespace: "shop", name: "p", addresses: [1], labels: NO_LABELS });
    assert.deepEqual(changed(), []);
    for (const end of ends) end();
    put("b", { clusterAddresses: [octets("10.96.0.9")] });
    assert.deepEqual(changed(), []);
  });
});
