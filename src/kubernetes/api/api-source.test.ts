import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { loadManifests } from "../../../test/support/kubernetes-api/control-plane.ts";
import type { FaultRule } from "../../../test/support/kubernetes-api/faults.ts";
import { RESOURCE_TYPES } from "../../../test/support/kubernetes-api/resource-types.ts";
import { SourceTest, type SourceTestOptions } from "../../../test/support/kubernetes-api/source-test.ts";
import { FakeClock } from "../../lib/time/clock.ts";

const fixture = fileURLToPath(new URL("../../../test/fixtures/kubernetes", import.meta.url));

const WAYS: readonly (readonly [title: string, options: SourceTestOptions])[] = [
  ["protobuf, lists streamed", {}],
  ["protobuf, lists in pages", { simulator: { streamsLists: false } }],
  ["JSON, lists streamed", { simulator: { servesProtobuf: false } }],
  ["JSON, lists in pages", { simulator: { servesProtobuf: false, streamsLists: false } }],
];

for (const [title, options] of WAYS) {
  describe(`lists and watches: ${title}`, () => {
    it("everything that there is", async () => {
      await using test = await SourceTest.prepare({
        ...options,
        kinds: ["namespaces", "services", "endpoints", "pods"],
      });
      loadManifests(test.api, fixture);
      for (let n = 0; n < 1200; n++) test.putService(`service-${n}`, `10.97.${n >> 8}.${n & 255}`);
      test.source.start();
      await test.synced();
      const { services, pods } = test.store;
      assert.equal(test.services.length, test.api.storage.snapshot(test.api.type("services")).objects.length);
      assert.deepEqual(Array.from(services.existingNamespaces(), ({ name }) => name).sort(), [
        "bare",
        "default",
        "kube-system",
        "shop",
      ]);
      const web = services.entry("web.shop")?.service;
      assert.deepEqual(web?.ports, [
        { name: "http", number: 80, protocol: "tcp" },
        { name: "https", number: 443, protocol: "tcp" },
      ]);
      assert.deepEqual(
        services.entry("dual.shop")?.service?.clusterAddresses.map(({ length }) => length),
        [4, 16],
      );
      assert.equal(services.entry("early.shop")?.service?.publishNotReadyAddresses, true);
      assert.equal(services.entry("ext.shop")?.service?.externalName, "www.example.com");
      const [database] = services.entry("db.shop")?.endpointSets ?? [];
      assert.deepEqual(
        database?.groups.map(({ count, readyCount, labels }) => ({ count, readyCount, labels })),
        [{ count: 3, readyCount: 2, labels: ["db-0", "db-1", "db-2"] }],
      );
      // A pod that is finished is not even sent.
      assert.deepEqual([...pods.pods()].map(({ name }) => name).sort(), [
        "busybox-1",
        "busybox-2",
        "client-1",
        "early-0",
        "web-a",
        "web-b",
      ]);
    });

    it("changes as they come", async () => {
      await using test = await SourceTest.start(options);
      await test.watching();
      test.putService("one");
      test.putService("two");
      await test.until(() => test.services.length === 2);
      test.putService("one", "10.96.0.9");
      test.api.delete("services", "default", "two");
      await test.until(() => test.services.length === 1);
      const [address] = test.store.services.entry("one.default")?.service?.clusterAddresses ?? [];
      assert.deepEqual([...(address ?? [])], [10, 96, 0, 9]);
    });
  });
}

describe("goes on after", () => {
  const isWatchOfServices: FaultRule["when"] = ({ verb, resource }) =>
    verb === "watch" && resource === "services";

  async function changeAndCatchUp(test: SourceTest, trouble: () => void | Promise<void>): Promise<void> {
    test.putService("before");
    test.putService("gone");
    await test.until(() => test.services.length === 2);
    await trouble();
    test.api.delete("services", "default", "gone");
    test.putService("after");
    await test.until(() => test.services.join() === "default/after,default/before");
  }

  it("every connection was cut, where it left off", async () => {
    await using test = await SourceTest.start();
    await test.watching();
    await changeAndCatchUp(test, () => test.api.cutConnections());
    const lists = test.api.requests.filter(({ parameters }) => parameters.has("sendInitialEvents"));
    assert.equal(lists.length, 3, "nothing was listed again");
    await test.watching();
    const line = test.log.lines.find((each) => each.includes("lost the watch on services"));
    assert.match(
      line ?? "",
      /^\[WARNING\] lost the watch on services: .*answering from what is known, [\d.]+m?s old, next try in/,
    );
    assert.ok(test.log.lines.some((each) => /^\[INFO\] watching again: services, after /.test(each)));
  });

  it("its revision was forgotten, without losing what it knows", async () => {
    for (const streamsLists of [true, false]) {
      await using test = await SourceTest.start({ simulator: { streamsLists } });
      await test.watching();
      await changeAndCatchUp(test, async () => {
        await test.api.close();
        test.putService("unseen");
        test.api.delete("services", "default", "unseen");
        test.putService("passing");
        test.api.storage.compact();
        test.api.delete("services", "default", "passing");
        assert.deepEqual(test.services, ["default/before", "default/gone"]);
        await test.api.open();
      });
    }
  });

  it("the API was away for a while, and answers meanwhile from what it knows", async () => {
    await using test = await SourceTest.start();
    await test.watching();
    await changeAndCatchUp(test, async () => {
      await test.api.close();
      await test.until(() => test.log.lines.some((line) => line.includes("nothing listens at")));
      assert.deepEqual(test.services, ["default/before", "default/gone"]);
      assert.equal(test.store.isSynced, true);
      await test.api.open();
    });
  });

  it("pages were forgotten before they were read", async () => {
    await using test = await SourceTest.prepare({ simulator: { streamsLists: false } });
    for (let n = 0; n < 1200; n++) test.putService(`service-${n}`);
    const { permits } = test.api;
    test.api.permits = (request) => {
      if (request.parameters.has("continue")) {
        test.putService("another");
        test.api.storage.compact();
      }
      return permits(request);
    };
    test.source.start();
    await test.synced();
    assert.equal(test.services.length, 1201);
    const whole = test.api.requests.filter(
      ({ resource, verb, parameters }) =>
        resource === "services" && verb === "list" && !parameters.has("limit"),
    );
    assert.equal(whole.length, 1);
  });

  const faults: readonly (readonly [title: string, fault: FaultRule["fault"], log: RegExp])[] = [
    ["429", { kind: "status", code: 429, retryAfter: 1 }, /too much to do \(429 Too Many Requests\)/],
    ["500", { kind: "status", code: 500 }, /the API server answers 500/],
    [
      "503 from a proxy",
      { kind: "status", code: 503, body: "<html>no backend</html>" },
      /answers 503: <html>no backend/,
    ],
    [
      "an HTML page",
      { kind: "answer", contentType: "text/html", body: "<html>" },
      /the answer is "text\/html"/,
    ],
    [
      "half a JSON document",
      { kind: "answer", contentType: "application/json", body: '{"type":"ADDED"' },
      /ended in the middle/,
    ],
    ["invalid JSON", { kind: "answer", contentType: "application/json", body: "{]\n" }, /not valid JSON/],
    [
      "another kind",
      {
        kind: "answer",
        contentType: "application/json",
        body: '{"type":"ADDED","object":{"kind":"Secret"}}\n',
      },
      /of kind "Secret" and not Service/,
    ],
    [
      "invalid protobuf",
      { kind: "answer", contentType: "application/vnd.kubernetes.protobuf", body: "\0\0\0\u0003abc" },
      /not valid protobuf|does not begin/,
    ],
    [
      "a token that expired in the middle of the watch",
      {
        kind: "answer",
        contentType: "application/json",
        body: '{"type":"ERROR","object":{"kind":"Status","code":401,"reason":"Unauthorized"}}\n',
      },
      /rejects the credentials \(401 Unauthorized\)/,
    ],
    ["a watch cut short", { kind: "cut", afterOctets: 10 }, /the connection to .* broke/],
    [
      "a watch that ends in the middle of an event",
      { kind: "end", afterOctets: 10 },
      /ended in the middle of an event/,
    ],
  ];
  for (const [title, fault, log] of faults) {
    it(title, async () => {
      const clock = new FakeClock();
      await using test = await SourceTest.start({ clock });
      await test.watching();
      test.api.faults.add({ fault, when: isWatchOfServices, times: 2 });
      await changeAndCatchUp(test, () => test.api.cutConnections());
      assert.equal(test.api.faults.pending, 0);
      assert.ok(
        test.log.lines.some((line) => log.test(line)),
        test.log.lines.join("\n"),
      );
    });
  }

  it("connections that became half-open, and a server that does not answer", async () => {
    const clock = new FakeClock();
    await using test = await SourceTest.start({ clock });
    await test.watching();
    await changeAndCatchUp(test, async () => {
      test.api.freezeConnections();
      test.api.faults.add({ fault: { kind: "hang" }, when: isWatchOfServices });
      clock.advance(150_000);
      await test.until(() => test.api.faults.pending === 0);
      clock.advance(150_000);
    });
    assert.ok(
      test.log.lines.some((line) => /nothing was heard for 1\d\d s/.test(line)),
      test.log.lines.join("\n"),
    );
  });

  it("a list that hangs, another way", async () => {
    const clock = new FakeClock();
    await using test = await SourceTest.prepare({ clock });
    test.api.faults.add({ fault: { kind: "hang" }, times: 3 });
    test.source.start();
    await test.until(() => test.api.requests.length === 3);
    clock.advance(30_000);
    await test.synced();
    assert.ok(test.api.requests.some(({ verb }) => verb === "list"));
  });

  it("a revision that the server has yet to reach, as after a backup was restored", async () => {
    const clock = new FakeClock();
    await using test = await SourceTest.start({ clock });
    await test.watching();
    test.api.faults.add({ fault: { kind: "status", code: 504 }, when: isWatchOfServices, times: 3 });
    await changeAndCatchUp(test, () => test.api.cutConnections());
    const lists = test.api.requests.filter(
      ({ resource, parameters }) => resource === "services" && parameters.has("sendInitialEvents"),
    );
    assert.equal(lists.length, 2);
  });
});

describe("says what it waits for", () => {
  it("when rights are missing, down to verb and resource", async () => {
    await using test = await SourceTest.prepare();
    test.api.permits = ({ resource }) => !resource.startsWith("endpoint");
    test.source.start();
    await test.until(() => test.log.lines.length > 0 && test.store.missingKinds.length === 1);
    assert.match(
      test.log.lines.join("\n"),
      /^\[WARNING\] cannot list endpointslices: no right to list endpointslices \(403 Forbidden\): the ClusterRole of this server needs the verbs list and watch on resource "endpointslices" of API group "discovery\.k8s\.io": .*; next try in /m,
    );
    assert.match(test.source.awaited.join(), /^endpoints \(no right to list endpointslices/);
    test.api.permits = () => true;
    await test.synced();
    assert.deepEqual(test.source.awaited, []);
  });

  it("once, until it changes", async () => {
    const clock = new FakeClock();
    await using test = await SourceTest.prepare({ clock, kinds: ["services"] });
    test.api.admits = () => false;
    test.source.start();
    await test.until(() => test.api.requests.length > 5);
    assert.equal(test.log.lines.length, 1);
    assert.match(test.log.lines[0] ?? "", /rejects the credentials \(401 Unauthorized\)/);
    test.api.admits = () => true;
    await test.until(() => test.log.lines.length > 1);
    assert.match(test.log.lines.at(-1) ?? "", /^\[INFO\] watching: services, after /);
  });
});

describe("old servers", () => {
  const without = (...plurals: string[]) =>
    RESOURCE_TYPES.filter(({ version, plural }) => !plurals.includes(`${version}/${plural}`));

  function putSlice(test: SourceTest): void {
    test.api.put("endpointslices", {
      metadata: { name: "db-1", namespace: "default", labels: { "kubernetes.io/service-name": "db" } },
      addressType: "IPv4",
      endpoints: [{ addresses: ["10.0.0.1"], hostname: "db-0" }],
      ports: [],
    });
  }

  it("have slices in v1beta1", async () => {
    await using test = await SourceTest.prepare({ simulator: { types: without("v1/endpointslices") } });
    putSlice(test);
    test.source.start();
    await test.synced();
    assert.deepEqual(
      [...test.store.services.endpointSets()].map(({ name }) => name),
      ["db-1"],
    );
  });

  it("have Endpoints alone", async () => {
    await using test = await SourceTest.prepare({
      simulator: { types: without("v1/endpointslices", "v1beta1/endpointslices"), streamsLists: false },
    });
    test.api.put("endpoints", {
      metadata: { name: "db", namespace: "default" },
      subsets: [
        { addresses: [{ ip: "10.0.0.1" }], notReadyAddresses: [{ ip: "10.0.0.2" }], ports: [{ port: 80 }] },
      ],
    });
    test.source.start();
    await test.watching();
    const sets = [...test.store.services.endpointSets()];
    assert.deepEqual(
      sets.map(({ service, groups }) => [service, groups[0]?.count, groups[0]?.readyCount]),
      [["db", 2, 1]],
    );
  });
});

it("selects by labels on the server", async () => {
  await using test = await SourceTest.prepare({ source: { labels: "tier=data", namespaceLabels: "team" } });
  test.api.put("namespaces", { metadata: { name: "ours", labels: { team: "a" } } });
  test.api.put("services", {
    metadata: { name: "yes", namespace: "ours", labels: { tier: "data" } },
    spec: {},
  });
  test.api.put("services", { metadata: { name: "no", namespace: "ours" }, spec: {} });
  test.source.start();
  await test.synced();
  assert.deepEqual(test.services, ["ours/yes"]);
  assert.deepEqual(
    Array.from(test.store.services.existingNamespaces(), ({ name }) => name),
    ["ours"],
  );
  test.api.put("services", {
    metadata: { name: "yes", namespace: "ours", labels: { tier: "web" } },
    spec: {},
  });
  await test.until(() => test.services.length === 0);
});

it("counts requests, and the time that changes of endpoints took", async () => {
  await using test = await SourceTest.start();
  await test.watching();
  test.putService("db");
  await test.until(() => test.services.length === 1);
  test.api.put("endpointslices", {
    metadata: {
      name: "db-1",
      namespace: "default",
      labels: { "kubernetes.io/service-name": "db" },
      annotations: {
        "endpoints.kubernetes.io/last-change-trigger-time": new Date(Date.now() - 3000).toISOString(),
      },
    },
    addressType: "IPv4",
    endpoints: [{ addresses: ["10.0.0.1"] }],
  });
  await test.until(() => [...test.store.services.endpointSets()].length === 1);
  const { body } = await test.metrics.expose();
  const host = new URL(test.api.url).host;
  assert.match(
    body,
    new RegExp(`coredns_kubernetes_rest_client_requests_total{code="200",method="GET",host="${host}"} 3`),
  );
  assert.match(body, new RegExp(`rest_client_request_duration_seconds_count{verb="GET",host="${host}"} 3`));
  assert.match(
    body,
    new RegExp(`rest_client_rate_limiter_duration_seconds_count{verb="GET",host="${host}"} 3`),
  );
  assert.match(body, /dns_programming_duration_seconds_bucket{service_kind="cluster_ip",le="4.096"} 1/);
  assert.match(body, /dns_programming_duration_seconds_bucket{service_kind="cluster_ip",le="2.048"} 0/);
  assert.match(body, /portolan_kubernetes_data_age_seconds{zone="cluster.local.",resource="services"} 0/);
});
