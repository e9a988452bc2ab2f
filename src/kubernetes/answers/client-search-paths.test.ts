import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Name } from "../../dns/name.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { feedToNobody } from "../../plugin/contract/site.ts";
import { makeTestQuery } from "../../plugin/testing.ts";
import { addressKey } from "../objects/addresses.ts";
import type { Kind, Pod } from "../objects/objects.ts";
import { NO_LABELS } from "../objects/shared-values.ts";
import { publishStore, StoreReplica } from "../store/sharing/replication.ts";
import { ClusterStore } from "../store/store.ts";
import { ClientSearchPaths } from "./client-search-paths.ts";
import { ClusterAnswers } from "./cluster-answers.ts";
import type { PodMode } from "./cluster-view.ts";

function pod(namespace: string, name: string, addresses: string[], rest: Partial<Pod> = {}): Pod {
  const keys = addresses.map((text) => addressKey(parseIpAddress(text) ?? assert.fail(text)));
  return { namespace, name, addresses: keys, labels: NO_LABELS, ...rest };
}

function make(pods: PodMode = "verified", replica = false) {
  const clock = new FakeClock();
  const kinds: Kind[] = ["namespaces", "services", "endpoints"];
  if (pods === "verified") kinds.push("pods");
  const store = new ClusterStore({ clock, kinds, replica });
  const zones = ["cluster.local.", "k8s.example.", "in-addr.arpa."].map((zone) => Name.parse(zone));
  const answers = new ClusterAnswers({
    store,
    zones,
    ttl: 5,
    pods,
    ignoreEmptyServices: false,
    zonal: false,
    ownAddresses: () => [],
  });
  const paths = new ClientSearchPaths(answers);
  const list = () => {
    for (const kind of ["namespaces", "services", "endpoints"] as const) store.replaceAll(kind, []);
    if (pods === "verified") {
      store.replaceAll("pods", [
        pod("shop", "one", ["10.0.0.1", "fd00::1"]),
        pod("blog", "two", ["10.0.0.2"]),
        pod("blog", "three", ["10.0.0.3"]),
        pod("shop", "four", ["10.0.0.3"]),
        pod("shop", "five", ["10.0.0.5"], { hostNetwork: true }),
      ]);
    }
  };
  const pathOf = (client: string, name = "db.shop.svc.cluster.local.") => {
    const path = paths.searchPath(makeTestQuery({ name, client }));
    assert.ok(!(path instanceof Promise));
    return typeof path === "string" ? path : path.map(String);
  };
  return { clock, store, paths, list, pathOf };
}

const SHOP = ["shop.svc.cluster.local.", "svc.cluster.local.", "cluster.local."];

describe("the search path", () => {
  it("is told in a later turn while another thread changes the pods", async () => {
    const writer = make();
    const reader = make("verified", true);
    writer.list();
    const feed: { told?: (message: unknown) => Promise<void> | void; snapshot?: () => Iterable<unknown> } =
      {};
    publishStore(writer.store, { ...feedToNobody, provide: (snapshot) => (feed.snapshot = snapshot) });
    new StoreReplica(reader.store).follow({ ...feedToNobody, receive: (told) => (feed.told = told) });
    const tellAll = () => {
      for (const message of feed.snapshot?.() ?? []) if (message !== undefined) void feed.told?.(message);
    };
    tellAll();
    assert.deepEqual(reader.pathOf("10.0.0.1"), SHOP);
    // Columns move: as long as it is not told where, nothing can be read.
    let moves = 0;
    const ignored = () => undefined;
    const told = { put: ignored, delete: ignored, listed: ignored, confirmed: ignored };
    writer.store.observe({ ...told, moved: () => moves++ });
    for (let number = 0; moves === 0; number++)
      writer.store.put("pods", pod("blog", `new-${number}`, [`10.1.${number >> 8}.${number & 0xff}`]));
    const query = makeTestQuery({ name: "db.shop.svc.cluster.local.", client: "10.0.0.1" });
    const path = reader.paths.searchPath(query);
    assert.ok(path instanceof Promise);
    await nextTurn();
    tellAll();
    const found = await path;
    assert.ok(typeof found !== "string");
    assert.deepEqual(found.map(String), SHOP);
  });

  it("is that of the client's namespace, in the zone of the name", () => {
    const { list, pathOf } = make();
    list();
    assert.deepEqual(pathOf("10.0.0.1"), SHOP);
    assert.deepEqual(pathOf("fd00::1"), SHOP);
    assert.deepEqual(pathOf("10.0.0.2")[0], "blog.svc.cluster.local.");
    assert.deepEqual(pathOf("10.0.0.1", "a.k8s.example."), [
      "shop.svc.k8s.example.",
      "svc.k8s.example.",
      "k8s.example.",
    ]);
  });

  it("ends with what the node adds", () => {
    const { list, pathOf, paths } = make();
    paths.hostSearch = [Name.parse("corp.example.")];
    list();
    assert.deepEqual(pathOf("10.0.0.1"), [...SHOP, "corp.example."]);
  });

  for (const [title, client, name, reason] of [
    ["who is no pod", "10.0.0.9", undefined, "no pod has the address 10.0.0.9"],
    ["an address of two pods", "10.0.0.3", undefined, "2 pods have the address 10.0.0.3"],
    ["a pod on its node's network", "10.0.0.5", undefined, "pod shop/five shares the address of its node"],
    [
      "a name elsewhere",
      "10.0.0.1",
      "www.example.com.",
      "the name is in no zone that holds names of services",
    ],
    [
      "a name of an address",
      "10.0.0.1",
      "1.in-addr.arpa.",
      "the name is in no zone that holds names of services",
    ],
  ] as const) {
    it(`is not told for ${title}`, () => {
      const { list, pathOf } = make();
      list();
      assert.equal(pathOf(client, name), reason);
    });
  }

  it("is not told before everything has been listed, even of pods that are known", () => {
    const { store, list, pathOf } = make();
    store.put("pods", pod("shop", "one", ["10.0.0.1"]));
    assert.equal(pathOf("10.0.0.1"), "the cluster has not been listed completely yet");
    list();
    assert.deepEqual(pathOf("10.0.0.1"), SHOP);
  });

  it("is not told any more when the pods were not heard of for 150 seconds, and told again when they are", () => {
    const { clock, store, list, pathOf } = make();
    list();
    clock.advance(150_000);
    assert.deepEqual(pathOf("10.0.0.1"), SHOP);
    clock.advance(1_000);
    assert.equal(pathOf("10.0.0.1"), "nothing was heard of the pods for 2m31s");
    store.confirm("services");
    assert.equal(typeof pathOf("10.0.0.1"), "string");
    store.confirm("pods");
    assert.deepEqual(pathOf("10.0.0.1"), SHOP);
  });

  it("moves with the address", () => {
    const { store, list, pathOf } = make();
    list();
    store.delete("pods", { namespace: "shop", name: "one" });
    assert.equal(pathOf("10.0.0.1"), "no pod has the address 10.0.0.1");
    store.put("pods", pod("blog", "new", ["10.0.0.1"]));
    assert.deepEqual(pathOf("10.0.0.1")[0], "blog.svc.cluster.local.");
  });

  it("is known only where pods are watched, and the caller can ask whether they are", () => {
    for (const mode of ["disabled", "insecure"] as const) {
      const { list, pathOf, paths } = make(mode);
      list();
      assert.match(paths.wantSearchPaths() ?? "", /it takes 'pods verified'/);
      assert.match(`${pathOf("10.0.0.1")}`, /the pods of the cluster are not known/);
    }
    const { paths } = make();
    assert.equal(paths.wanted, false);
    assert.equal(paths.wantSearchPaths(), undefined);
    assert.equal(paths.wanted, true);
  });
});
