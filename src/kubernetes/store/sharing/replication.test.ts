import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import { Name } from "../../../dns/name.ts";
import { formatRecord } from "../../../dns/resource-record.ts";
import { RecordType } from "../../../dns/type-names.ts";
import { parseIpAddress } from "../../../lib/net/ip-address.ts";
import { FakeClock } from "../../../lib/time/clock.ts";
import { type Feed, feedToNobody } from "../../../plugin/contract/site.ts";
import { ClusterAnswers } from "../../answers/cluster-answers.ts";
import { addressKey } from "../../objects/addresses.ts";
import { type Identity, KINDS, type Kind } from "../../objects/objects.ts";
import { packGroups } from "../../objects/reduce-endpoints.ts";
import { NO_LABELS } from "../../objects/shared-values.ts";
import { ClusterStore } from "../store.ts";
import { publishStore, StoreReplica } from "./replication.ts";

/** A feed in one thread, with the copying that happens between two. */
class LocalFeed {
  readonly #listeners = new Set<(message: unknown) => Promise<void> | void>();
  #snapshot: () => Iterable<unknown> = () => [];
  published = 0;

  readonly leader: Feed = {
    ...feedToNobody,
    role: "leader",
    publish: (message) => {
      this.published++;
      for (const listener of this.#listeners) void listener(structuredClone(message));
    },
    provide: (snapshot) => {
      this.#snapshot = snapshot;
    },
    receive: () => undefined,
  };

  /** As a follower that starts now. */
  attach(store: ClusterStore): void {
    new StoreReplica(store).follow({
      ...feedToNobody,
      role: "follower",
      publish: () => undefined,
      provide: () => undefined,
      receive: (listener) => {
        for (const message of this.#snapshot())
          if (message !== undefined) void listener(structuredClone(message));
        this.#listeners.add(listener);
      },
    });
  }
}

/** A feed whose messages wait until they are sent. */
class HeldFeed {
  #listener: ((message: unknown) => Promise<void> | void) | undefined;
  #snapshot: () => Iterable<unknown> = () => [];
  #held: unknown[] = [];
  /** Of the snapshot that was sent last. */
  snapshotMessages = 0;

  readonly leader: Feed = {
    ...feedToNobody,
    role: "leader",
    publish: (message) => void this.#held.push(structuredClone(message)),
    provide: (snapshot) => {
      this.#snapshot = snapshot;
    },
    receive: () => undefined,
  };

  /** @param former whose messages go first. @returns what ends it */
  attach(follower: StoreReplica, former?: HeldFeed): () => void {
    const end = follower.follow({
      ...feedToNobody,
      role: "follower",
      publish: () => undefined,
      provide: () => undefined,
      receive: (listener) => {
        this.#listener = listener;
      },
    });
    former?.send();
    this.#held = [];
    this.snapshotMessages = 0;
    for (const message of this.#snapshot()) {
      if (message === undefined) continue;
      this.snapshotMessages++;
      void this.#listener?.(structuredClone(message));
    }
    return end;
  }

  get waiting(): readonly unknown[] {
    return this.#held;
  }

  send(): void {
    for (const message of this.#held.splice(0)) void this.#listener?.(message);
  }
}

function octets(text: string): Uint8Array {
  return parseIpAddress(text) ?? assert.fail(`${text} is no address`);
}

type Step = (store: ClusterStore, clock: FakeClock) => void;

const name = fc.constantFrom("a", "b", "c");
const address = fc.integer({ min: 1, max: 5 }).map((last) => `10.0.0.${last}`);
const addresses = fc.uniqueArray(address, { maxLength: 3 });
const ports = [{ name: "http", number: 80, protocol: "tcp" }] as const;

const putService = (store: ClusterStore, service: string, own: string[]): void =>
  store.put("services", {
    namespace: "shop",
    name: service,
    type: own.length > 0 ? "clusterIP" : "headless",
    clusterAddresses: own.map(octets),
    externalName: "",
    ports,
    publishNotReadyAddresses: false,
    externalAddresses: own,
  });

const steps: fc.Arbitrary<Step> = fc.oneof(
  fc.tuple(name, addresses).map(
    ([service, own]): Step =>
      (store) =>
        putService(store, service, own),
  ),
  fc.tuple(name, name, addresses).map(
    ([set, service, own]): Step =>
      (store) => {
        const packed = own.map((text) => ({ octets: octets(text), ready: true, label: "", zone: "z" }));
        store.put("endpoints", { namespace: "shop", name: set, service, groups: packGroups(packed, ports) });
      },
  ),
  fc.tuple(name, addresses).map(
    ([pod, own]): Step =>
      (store) =>
        store.put("pods", {
          namespace: "shop",
          name: pod,
          addresses: own.map((text) => addressKey(octets(text))),
          labels: new Map([["app", pod]]),
        }),
  ),
  fc.boolean().map(
    (exists): Step =>
      (store) =>
        exists
          ? store.put("namespaces", { namespace: "", name: "shop" })
          : store.delete("namespaces", { namespace: "", name: "shop" }),
  ),
  fc.tuple(fc.constantFrom<Kind>("services", "endpoints", "pods"), name).map(
    ([kind, object]): Step =>
      (store) =>
        store.delete(kind, { namespace: "shop", name: object }),
  ),
  fc.tuple(fc.constantFrom(...KINDS), fc.boolean()).map(
    ([kind, all]): Step =>
      (store) =>
        store.replaceAll(kind, all ? [...store.objects(kind)] : []),
  ),
  fc.integer({ min: 1, max: 5_000 }).map(
    (time): Step =>
      (_store, clock) =>
        clock.advance(time),
  ),
);

/** The contents of a store, in one order. */
function picture(store: ClusterStore): unknown {
  const zone = Name.parse("cluster.local.");
  const answers = new ClusterAnswers({
    store,
    zones: [zone],
    ttl: 5,
    pods: "verified",
    namespaces: undefined,
    namespacesBySelector: false,
    ignoreEmptyServices: false,
    zonal: false,
    ownAddresses: () => [],
  });
  const asked = ["a", "b", "c"].flatMap((service) =>
    [`${service}.shop.svc`, `_http._tcp.${service}.shop.svc`, "10-0-0-1.shop.pod", "shop.svc", ""].map(
      (text) => (text === "" ? zone : Name.parse(`${text}.cluster.local.`)),
    ),
  );
  const resolved = asked.flatMap((question) => {
    const clusterZone = answers.zoneOf(question);
    assert.ok(clusterZone !== undefined);
    return [RecordType.A, RecordType.SRV, RecordType.SOA].map((type) => {
      const { exists, answer } = answers.resolve(question, type, clusterZone);
      return [question.toString(), type, exists, answer.map((record) => formatRecord(record)).sort()];
    });
  });
  const byName = (one: Identity, other: Identity): number => one.name.localeCompare(other.name);
  return {
    resolved,
    objects: KINDS.map((kind) => [...store.objects(kind)].sort(byName)),
    serials: [store.serial, store.externalSerial],
    synced: KINDS.map((kind) => store.isKindSynced(kind)),
  };
}

describe("a replica", () => {
  it("stays right while it follows two feeds of a store, and when it begins to follow another store", async () => {
    const change = fc.tuple(steps, fc.constantFrom("first", "second", "both", "later"));
    await fc.assert(
      fc.asyncProperty(
        fc.array(change, { maxLength: 30 }),
        fc.boolean(),
        fc.boolean(),
        async (changes, isOther, goesFirst) => {
          const clock = new FakeClock({ wallTime: 1_700_000_000_000 });
          const leader = new ClusterStore({ clock, kinds: KINDS, identity: 1 });
          const replica = new ClusterStore({ clock, kinds: KINDS, replica: true });
          const follower = new StoreReplica(replica);
          const [first, second] = [new HeldFeed(), new HeldFeed()];
          publishStore(leader, first.leader);
          first.attach(follower);
          // The one sends what it has when the other does, before, or behind it.
          for (const [at, [step, sends]] of changes.entries()) {
            if (at === 10) {
              publishStore(leader, second.leader);
              second.attach(follower, goesFirst ? first : undefined);
            }
            step(leader, clock);
            if (sends === "first" || sends === "both") first.send();
            if (sends === "second" || sends === "both") second.send();
          }
          await nextTurn();
          first.send();
          second.send();
          assert.deepEqual(picture(replica), picture(leader));
          if (!isOther) return;
          const next = new ClusterStore({ clock, kinds: KINDS, identity: 2 });
          putService(next, "c", ["10.0.0.5"]);
          for (const kind of KINDS) next.replaceAll(kind, [...next.objects(kind)]);
          const third = new HeldFeed();
          publishStore(next, third.leader);
          third.attach(follower, goesFirst ? second : undefined);
          third.send();
          assert.deepEqual(picture(replica), picture(next));
        },
      ),
      { numRuns: 200 },
    );
  });

  it("is told where the store lies, and no object of it", () => {
    const clock = new FakeClock();
    const leader = new ClusterStore({ clock, kinds: KINDS, identity: 7 });
    const replica = new ClusterStore({ clock, kinds: KINDS, replica: true });
    const [first, second] = [new HeldFeed(), new HeldFeed()];
    publishStore(leader, first.leader);
    const endFirst = first.attach(new StoreReplica(replica));
    assert.equal(first.snapshotMessages, 1);
    const names = Array.from({ length: 100 }, (_, at) => `web-${at}`);
    const pods = names.map((pod, at) => ({
      namespace: "shop",
      name: pod,
      addresses: [at],
      labels: NO_LABELS,
    }));
    for (const kind of KINDS) leader.replaceAll(kind, []);
    leader.replaceAll("pods", pods);
    assert.ok(Buffer.byteLength(JSON.stringify(first.waiting)) < 400 * pods.length);
    assert.ok(
      !JSON.stringify(first.waiting).includes("web-"),
      "addresses are told that are outdated, nothing else",
    );
    first.send();
    assert.deepEqual([...replica.objects("pods")], pods);
    endFirst();
    // As one that comes later, or in the place of one that has ended.
    const later = new ClusterStore({ clock, kinds: KINDS, replica: true });
    publishStore(leader, second.leader);
    second.attach(new StoreReplica(later));
    assert.equal(second.snapshotMessages, 1);
    assert.deepEqual(picture(later), picture(leader));
  });

  it("goes back to the store of before where that which it began to follow is given up", () => {
    const clock = new FakeClock();
    const [leader, next] = [1, 2].map((identity) => new ClusterStore({ clock, kinds: KINDS, identity }));
    assert.ok(leader !== undefined && next !== undefined);
    const replica = new ClusterStore({ clock, kinds: KINDS, replica: true });
    const follower = new StoreReplica(replica);
    const [first, second] = [new HeldFeed(), new HeldFeed()];
    putService(leader, "a", ["10.0.0.1"]);
    for (const kind of KINDS) leader.replaceAll(kind, [...leader.objects(kind)]);
    publishStore(leader, first.leader);
    const endFirst = first.attach(follower);
    let changes = 0;
    replica.subscribe(({ everything }) => {
      if (everything) changes++;
    });
    publishStore(next, second.leader);
    const endSecond = second.attach(follower);
    const shown = () => Array.from(replica.objects("services"), (each) => `${each.clusterAddresses[0]}`);
    assert.deepEqual(shown(), ["10,0,0,1"], "the next one has not been listed yet");
    putService(next, "a", ["10.0.0.2"]);
    for (const kind of KINDS) next.replaceAll(kind, [...next.objects(kind)]);
    second.send();
    assert.deepEqual(shown(), ["10,0,0,2"]);
    const before = changes;
    endSecond();
    assert.deepEqual(shown(), ["10,0,0,1"]);
    assert.equal(changes, before + 1, "whoever remembers answers is told");
    putService(leader, "a", ["10.0.0.3"]);
    assert.deepEqual(shown(), ["10,0,0,3"]);
    endFirst();
    endFirst();
  });

  it("answers as the store that it follows does, whenever it began to follow", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { maxLength: 25 }), fc.nat(25), async (changes, start) => {
        const clock = new FakeClock({ wallTime: 1_700_000_000_000 });
        const leader = new ClusterStore({ clock, kinds: KINDS });
        const later = new FakeClock({ wallTime: 1_800_000_000_000 });
        const replica = new ClusterStore({ clock: later, kinds: KINDS, replica: true });
        const feed = new LocalFeed();
        publishStore(leader, feed.leader);
        for (const [at, change] of changes.entries()) {
          if (at === start) feed.attach(replica);
          change(leader, clock);
        }
        if (start >= changes.length) feed.attach(replica);
        await nextTurn();
        assert.deepEqual(picture(replica), picture(leader));
        assert.equal(replica.isSynced, leader.isSynced);
      }),
      { numRuns: 200 },
    );
  });

  it("hears nothing of what is as it was, and nothing once that is ended", async () => {
    const store = new ClusterStore({ clock: new FakeClock(), kinds: KINDS });
    const feed = new LocalFeed();
    const end = publishStore(store, feed.leader);
    for (const kind of KINDS) store.replaceAll(kind, []);
    const before = feed.published;
    putService(store, "a", ["10.0.0.1"]);
    putService(store, "a", ["10.0.0.1"]);
    assert.equal(feed.published, before + 1);
    end();
    putService(store, "a", ["10.0.0.2"]);
    await nextTurn();
    assert.equal(feed.published, before + 1);
  });

  it("hears once a turn that everything changes as long as the first lists come in, and in time that they are over", async () => {
    const clock = new FakeClock();
    const leader = new ClusterStore({ clock, kinds: KINDS });
    const replica = new ClusterStore({ clock, kinds: KINDS, replica: true });
    const feed = new LocalFeed();
    publishStore(leader, feed.leader);
    feed.attach(replica);
    const heard: string[] = [];
    replica.subscribe(({ everything, services }) => heard.push(everything ? "everything" : services.join()));
    for (let turn = 0; turn < 2; turn++) {
      putService(leader, "a", [`10.0.0.${turn}`]);
      putService(leader, "b", [`10.0.1.${turn}`]);
      assert.equal(heard.length, turn);
      await nextTurn();
    }
    putService(leader, "c", ["10.0.0.7"]);
    for (const kind of KINDS) leader.replaceAll(kind, [...leader.objects(kind)]);
    assert.ok(replica.isSynced);
    assert.deepEqual(heard, ["everything", "everything", "everything"]);
    putService(leader, "c", ["10.0.0.8"]);
    assert.deepEqual(heard.slice(3), ["c.shop"]);
    await nextTurn();
    assert.equal(heard.length, 4);
  });

  it("knows how old the leader's data are", () => {
    const clock = new FakeClock();
    const leader = new ClusterStore({ clock, kinds: KINDS });
    const replica = new ClusterStore({ clock, kinds: KINDS, replica: true });
    const feed = new LocalFeed();
    publishStore(leader, feed.leader);
    feed.attach(replica);
    leader.replaceAll("pods", []);
    clock.advance(1000);
    assert.equal(replica.age("pods"), 1000);
    leader.confirm("pods");
    assert.equal(replica.age("pods"), 0);
  });

  it("tells those who subscribe to it what changed", () => {
    const clock = new FakeClock();
    const leader = new ClusterStore({ clock, kinds: KINDS });
    const replica = new ClusterStore({ clock, kinds: KINDS, replica: true });
    const feed = new LocalFeed();
    publishStore(leader, feed.leader);
    feed.attach(replica);
    for (const kind of KINDS) leader.replaceAll(kind, []);
    const touched: string[] = [];
    replica.subscribe(({ services }) => touched.push(...services));
    putService(leader, "a", ["10.0.0.1"]);
    assert.deepEqual([...new Set(touched)], ["a.shop"]);
  });
});
