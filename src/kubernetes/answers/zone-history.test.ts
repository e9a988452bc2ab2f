/** Differences of a cluster's zone, applied to copies taken earlier. */
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { setImmediate as nextImmediate } from "node:timers/promises";
import { Name } from "../../dns/name.ts";
import { SOA } from "../../dns/record-table.ts";
import { formatRecord } from "../../dns/resource-record.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { transferRecords, transferWay } from "../../plugin/contract/transfer.ts";
import { packGroups } from "../objects/reduce-endpoints.ts";
import { ClusterStore } from "../store/store.ts";
import { ClusterAnswers } from "./cluster-answers.ts";
import { clusterTransfers } from "./cluster-transfers.ts";
import type { FollowedZones } from "./followed-zones.ts";

const APEX = Name.parse("cluster.local.");

let clock: FakeClock;
let store: ClusterStore;
let zones: FollowedZones;
let told = 0;

beforeEach(() => {
  clock = new FakeClock({ wallTime: 1_700_000_000_000 });
  store = new ClusterStore({ clock, kinds: ["namespaces", "services", "endpoints"] });
  const answers = new ClusterAnswers({
    store,
    ttl: 5,
    ownAddresses: () => [],
    zones: [APEX],
    pods: "disabled",
    ignoreEmptyServices: false,
    zonal: false,
  });
  zones = clusterTransfers(answers, clock);
  told = 0;
  zones.onZoneChange(() => told++);
  store.replaceAll("namespaces", [
    { namespace: "", name: "shop" },
    { namespace: "", name: "bank" },
  ]);
  store.replaceAll("endpoints", []);
  store.replaceAll("services", []);
});

function put(namespace: string, name: string, address: number): void {
  store.put("services", {
    namespace,
    name,
    type: "clusterIP",
    clusterAddresses: [Uint8Array.of(10, 96, 0, address)],
    externalName: "",
    ports: [{ name: "http", protocol: "tcp", number: 80 }],
    publishNotReadyAddresses: false,
    externalAddresses: [],
  });
}

function putHeadless(name: string, ...hosts: readonly number[]): void {
  store.put("services", {
    namespace: "shop",
    name,
    type: "headless",
    clusterAddresses: [],
    externalName: "",
    ports: [],
    publishNotReadyAddresses: false,
    externalAddresses: [],
  });
  const list = hosts.map((host) => ({
    octets: Uint8Array.of(10, 0, host >> 8, host & 255),
    ready: true,
    label: "",
    zone: "",
  }));
  store.put("endpoints", {
    namespace: "shop",
    name: `${name}-1`,
    service: name,
    groups: packGroups(list, []),
  });
}

/** A secondary: what it has, and how it came to it. */
class Secondary {
  records = new Set<string>();
  serial: number | undefined;

  ask(): "same" | "ixfr" | "axfr" {
    const transfer = zones.transfer(APEX, this.serial) ?? assert.fail("no zone");
    const way = transferWay(transfer, this.serial);
    const all = [...transferRecords(transfer, this.serial)];
    if (way === "axfr") this.records = new Set(all.slice(1, -1).map(formatRecord));
    if (way === "ixfr") this.#apply(all.slice(1, -1));
    if (way !== "same") this.serial = transfer.soa.data.serial;
    return way;
  }

  /** RFC 1995 section 4: what is removed is there, what is added is not. */
  #apply(records: readonly Parameters<typeof formatRecord>[0][]): void {
    let isAdding = true;
    for (const record of records) {
      if (SOA.is(record)) {
        isAdding = !isAdding;
        if (!isAdding) assert.equal(record.data.serial, this.serial);
        else this.serial = record.data.serial;
        continue;
      }
      const text = formatRecord(record);
      if (isAdding) {
        assert.equal(this.records.has(text), false, `added twice: ${text}`);
        this.records.add(text);
      } else assert.ok(this.records.delete(text), `removed, and was not there: ${text}`);
    }
  }
}

/** Lets what was cut be compared. */
async function settle(milliseconds: number): Promise<void> {
  await clock.settle(milliseconds);
  for (let turn = 0; turn < 20; turn++) await nextImmediate();
}

function live(): Set<string> {
  return new Set([...(zones.transfer(APEX)?.records() ?? [])].map(formatRecord));
}

describe("changes of a cluster's zone", () => {
  it("lead from any earlier copy to what there is", async () => {
    putHeadless("db", 1, 2);
    const [first, second] = [new Secondary(), new Secondary()];
    assert.equal(first.ask(), "axfr");
    put("shop", "web", 1);
    await settle(1_000);
    assert.equal(first.ask(), "ixfr");
    assert.equal(second.ask(), "axfr");
    put("shop", "web", 2);
    putHeadless("db", 2, 3);
    put("bank", "vault", 9);
    await settle(1_000);
    assert.equal(second.ask(), "ixfr");
    store.delete("namespaces", { namespace: "", name: "bank" });
    put("shop", "web", 1);
    await settle(1_000);
    assert.equal(first.ask(), "ixfr");
    assert.equal(second.ask(), "ixfr");
    assert.deepEqual(first.records, live());
    assert.deepEqual(second.records, live());
    assert.equal(first.ask(), "same");
  });

  it("come and go at random, and copies are those of the cluster in the end", async () => {
    const secondaries = [new Secondary(), new Secondary(), new Secondary()];
    const ways = new Map<string, number>();
    let state = 7;
    const random = (bound: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return (state >>> 8) % bound;
    };
    for (let round = 0; round < 600; round++) {
      const name = `s${random(12)}`;
      const kind = random(6);
      if (kind === 0) store.delete("services", { namespace: "shop", name });
      else if (kind === 1) putHeadless(name, ...Array.from({ length: random(6) }, () => random(40)));
      else if (kind === 2 && random(10) === 0) store.delete("namespaces", { namespace: "", name: "bank" });
      else if (kind === 2) store.put("namespaces", { namespace: "", name: "bank" });
      else put(random(2) === 0 ? "shop" : "bank", name, random(200));
      if (random(4) === 0) await settle(random(1_500));
      const secondary = secondaries[random(9)];
      const way = secondary?.ask();
      if (way !== undefined) ways.set(way, (ways.get(way) ?? 0) + 1);
    }
    await settle(2_000);
    for (const secondary of secondaries) {
      secondary.ask();
      assert.deepEqual(secondary.records, live());
    }
    assert.ok((ways.get("ixfr") ?? 0) > 5 * (ways.get("axfr") ?? 0), JSON.stringify([...ways]));
  });

  it("are told of once a second, and do not drive serials ahead of time", async () => {
    const secondary = new Secondary();
    secondary.ask();
    await settle(5_000);
    told = 0;
    for (let change = 0; change < 1_000; change++) {
      put("shop", `s${change % 50}`, change % 200);
      await settle(10);
      if (change % 20 === 0) secondary.ask();
    }
    await settle(2_000);
    assert.ok(told >= 8 && told <= 13, `told ${told} times in 12 s`);
    assert.equal(secondary.ask(), "ixfr");
    assert.deepEqual(secondary.records, live());
    const ahead = (secondary.serial ?? 0) - clock.wallTime() / 1_000;
    assert.ok(ahead <= 2, `${ahead} s ahead`);
  });

  it("that happen while the first copy goes out are not lost, and a copy that is given up is begun anew", async () => {
    for (let name = 0; name < 20; name++) put("shop", `s${name}`, name + 1);
    const abandoned = zones.transfer(APEX)?.records()[Symbol.iterator]();
    abandoned?.next();
    await settle(31_000);
    const transfer = zones.transfer(APEX) ?? assert.fail("no zone");
    const secondary = new Secondary();
    secondary.serial = transfer.soa.data.serial;
    for (const record of transfer.records()) {
      secondary.records.add(formatRecord(record));
      if (secondary.records.size === 5) {
        put("shop", "s1", 99);
        put("shop", "new", 100);
        store.delete("services", { namespace: "shop", name: "s15" });
      }
    }
    await settle(2_000);
    assert.equal(secondary.ask(), "ixfr");
    assert.deepEqual(secondary.records, live());
  });
});
