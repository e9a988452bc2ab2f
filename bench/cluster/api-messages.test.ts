// Portolan's own reader decodes the messages of the benchmark's API: figures of a misread cluster would mean nothing.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ApiStatusError } from "../../src/kubernetes/api/access/api-error.ts";
import { decodeEvent, decodePage } from "../../src/kubernetes/api/client/codec.ts";
import { RESOURCES } from "../../src/kubernetes/api/client/resource.ts";
import { member, textMember } from "../../src/kubernetes/objects/json.ts";
import type { Kind, ObjectOfKind } from "../../src/kubernetes/objects/objects.ts";
import { SharedValues } from "../../src/kubernetes/objects/shared-values.ts";
import { EventEncoder, encodeList } from "./api-messages.ts";
import { NAMESPACES, type ObjectType, PODS, SERVICES, SLICES } from "./api-objects.ts";
import { ApiState } from "./api-state.ts";
import { clusterAddress } from "./cluster-shape.ts";

const SIZE = { namespaces: 3, services: 8, endpoints: 300, nodes: 10, endpointsOfSlice: 100 };
const reduce = { endpointPodNames: true, zones: true, podLabels: true, shared: new SharedValues() };

function listed<K extends Kind>(kind: K, type: ObjectType): ObjectOfKind[K][] {
  const state = new ApiState(SIZE);
  const page = { revision: state.revision, continueToken: "3", remaining: 7 };
  const { objects, ...rest } = decodePage(
    encodeList(type, state.objects(type), page),
    "protobuf",
    RESOURCES[kind][0],
  );
  assert.deepEqual(rest, { resourceVersion: "100000000", continueToken: "3" });
  return [...objects].map((value) => {
    const reduced = RESOURCES[kind][0].reduce(value, reduce);
    if ("problem" in reduced) assert.fail(reduced.problem);
    return reduced.object;
  });
}

describe("a list", () => {
  test("of slices has all endpoints, with names, zones and ports", () => {
    const sets = listed("endpoints", SLICES);
    // And the one that the benchmark watches.
    assert.equal(
      sets.flatMap(({ groups }) => groups).reduce((sum, { readyCount }) => sum + readyCount, 0),
      301,
    );
    const [group] = sets[0]?.groups ?? [];
    assert.deepEqual([...(group?.addresses.subarray(0, 8) ?? [])], [10, 0, 0, 0, 10, 0, 0, 1]);
    assert.match(group?.labels?.[0] ?? "", /^payments-api-0-[a-z0-9]{10}-[a-z0-9]{5}$/);
    assert.equal(group?.zones?.[1], "eu-central-1b");
    assert.deepEqual(group?.ports, [
      { name: "http", number: 8080, protocol: "tcp" },
      { name: "metrics", number: 9090, protocol: "tcp" },
    ]);
  });

  test("of Services has cluster addresses, and headless ones", () => {
    const services = listed("services", SERVICES);
    assert.deepEqual(
      services.map(({ type }) => type),
      [0, 1, 2, 3, 4, 5, 6, 7, 8].map((index) => (index === 4 || index === 8 ? "headless" : "clusterIP")),
    );
    assert.deepEqual([...(services[1]?.clusterAddresses[0] ?? [])], [172, 20, 0, 1]);
  });

  test("of namespaces and of pods has their names", () => {
    assert.deepEqual(
      listed("namespaces", NAMESPACES).map(({ name }) => name),
      ["team-payments-0", "team-search-1", "team-media-2"],
    );
    const pods = listed("pods", PODS);
    assert.equal(pods.length, 301);
    assert.deepEqual(pods[2]?.addresses, [0x0a00_0002]);
    assert.equal(pods[2]?.labels.get("app.kubernetes.io/name"), "payments-api-0");
  });
});

describe("an event", () => {
  const events = new EventEncoder();
  const read = (frame: Buffer) => {
    assert.equal(frame.readUInt32BE(0), frame.length - 4);
    return decodeEvent(frame.subarray(4), "protobuf", RESOURCES.endpoints[0]);
  };

  test("moves the pod that is watched to another address", () => {
    const state = new ApiState(SIZE);
    const { event, pod } = state.moveWatched();
    const { type, object } = read(events.encode("MODIFIED", event.type, event.object));
    assert.equal(type, "MODIFIED");
    const reduced = RESOURCES.endpoints[0].reduce(object, reduce);
    if ("problem" in reduced) assert.fail(reduced.problem);
    assert.equal(reduced.object.service, "watched");
    assert.deepEqual([...(reduced.object.groups[0]?.addresses ?? [])], [10, 0, pod >> 8, pod & 0xff]);
  });

  test("replaces one pod of many, with a later revision", () => {
    const state = new ApiState(SIZE);
    const before = state.revision;
    const event = state.replaceSomePod();
    assert.equal(event.revision, before + 1);
    const { object } = read(events.encode("MODIFIED", event.type, event.object));
    assert.equal(textMember(member(object, "metadata"), "resourceVersion"), String(event.revision));
  });

  test("says that one of many pods is not ready, and then that it is again", () => {
    const state = new ApiState({ ...SIZE, services: 1 });
    const readyCounts = (): readonly number[] => {
      const { event, type, object } = state.flipSomePod();
      const reduced = RESOURCES.endpoints[0].reduce(read(events.encode(event, type, object)).object, reduce);
      if ("problem" in reduced) assert.fail(reduced.problem);
      return reduced.object.groups.map(({ count, readyCount }) => count - readyCount);
    };
    const seen = Array.from({ length: 20 }, readyCounts).flat();
    assert.deepEqual(new Set(seen), new Set([0, 1]));
  });

  test("has a Service come with another address each time, and go", () => {
    const state = new ApiState(SIZE);
    const addresses = [state.appear(), state.appear()].map(({ event, service }) => {
      assert.equal(event.event, "ADDED");
      const frame = events.encode(event.event, event.type, event.object);
      const { object } = decodeEvent(frame.subarray(4), "protobuf", RESOURCES.services[0]);
      assert.equal(textMember(member(object, "spec"), "clusterIP"), clusterAddress(service));
      return clusterAddress(service);
    });
    assert.notEqual(addresses[0], addresses[1]);
    assert.equal(state.disappear().event, "DELETED");
  });

  test("creates, patches and deletes Services and their slices, each in its turn", () => {
    const state = new ApiState(SIZE);
    const known = new Map<string, string>();
    const counts = { ADDED: 0, MODIFIED: 0, DELETED: 0 };
    for (let at = 0; at < 20_000; at++) {
      const { event, type, object: octets } = state.changeSomething();
      const kind = type === SERVICES ? "services" : "endpoints";
      // Of what is deleted only the name is read.
      const frame = events.encode(event === "DELETED" ? "MODIFIED" : event, type, octets);
      const { object } = decodeEvent(frame.subarray(4), "protobuf", RESOURCES[kind][0]);
      const reduced = RESOURCES[kind][0].reduce(object, reduce);
      if ("problem" in reduced) assert.fail(reduced.problem);
      const { namespace, name } = reduced.object;
      const key = `${kind} ${namespace}/${name}`;
      const now = JSON.stringify(reduced.object);
      if ("groups" in reduced.object) {
        const [group] = reduced.object.groups;
        assert.ok(group !== undefined && group.count >= 1 && group.count <= 5);
      }
      assert.equal(known.has(key), event !== "ADDED", key);
      // A patch changes something; what is deleted comes as it was.
      if (event !== "ADDED") assert.equal(known.get(key) === now, event === "DELETED", key);
      if (event === "DELETED") known.delete(key);
      else known.set(key, now);
      counts[event]++;
    }
    for (const [event, share] of [
      ["ADDED", 2 / 7],
      ["MODIFIED", 3 / 7],
      ["DELETED", 2 / 7],
    ] as const)
      assert.ok(Math.abs(counts[event] / 20_000 - share) < 0.03, event);
  });

  test("may end a list, or a watch", () => {
    const { type, object } = read(events.bookmark(SLICES, 7, true));
    assert.equal(type, "BOOKMARK");
    const annotations = member(member(object, "metadata"), "annotations");
    assert.equal(textMember(annotations, "k8s.io/initial-events-end"), "true");
    const expired = read(events.expired()).object;
    assert.ok(expired instanceof ApiStatusError && expired.isExpired);
  });
});
