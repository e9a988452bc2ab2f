import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { formatIpAddress } from "../../lib/net/ip-address.ts";
import { endpointLabel } from "../store/services/service-endpoints.ts";
import { formatAddressKey } from "./addresses.ts";
import type { Reduced } from "./objects.ts";
import { type ReduceOptions, reduceNamespace, reducePod, reduceService } from "./reduce.ts";
import { reduceEndpointSlice, reduceEndpoints } from "./reduce-endpoints.ts";
import { SharedValues } from "./shared-values.ts";

const shared = new SharedValues();
const plain: ReduceOptions = { shared };

function objectOf<T>(reduced: Reduced<T>): T {
  if ("problem" in reduced) assert.fail(reduced.problem);
  return reduced.object;
}

function problemOf(reduced: Reduced<unknown>): string {
  if ("object" in reduced) assert.fail("was accepted");
  return reduced.problem;
}

function service(spec: unknown, metadata: object = {}): unknown {
  return { kind: "Service", metadata: { namespace: "shop", name: "web", ...metadata }, spec };
}

describe("reduceNamespace", () => {
  it("keeps the name", () => {
    assert.deepEqual(objectOf(reduceNamespace({ metadata: { name: "shop" } })), {
      namespace: "",
      name: "shop",
    });
  });

  it("says what is wrong with a name", () => {
    assert.equal(problemOf(reduceNamespace({})), "metadata.name is missing or not text");
    assert.equal(
      problemOf(reduceNamespace({ metadata: { name: "a.b" } })),
      'metadata.name "a.b" is not a DNS label',
    );
  });
});

describe("reduceService", () => {
  it("keeps addresses of both families, and ports", () => {
    const web = objectOf(
      reduceService(
        service({
          clusterIP: "10.96.20.7",
          clusterIPs: ["10.96.20.7", "fd00:10:96::7", "10.96.20.7"],
          ports: [
            { name: "HTTP", port: 80 },
            { port: 53, protocol: "UDP" },
            { name: "off", port: null },
          ],
        }),
        plain,
      ),
    );
    assert.equal(web.type, "clusterIP");
    assert.deepEqual(web.clusterAddresses.map(formatIpAddress), ["10.96.20.7", "fd00:10:96::7"]);
    assert.deepEqual(web.ports, [
      { name: "http", number: 80, protocol: "tcp" },
      { name: "", number: 53, protocol: "udp" },
    ]);
  });

  const shapes: [title: string, spec: unknown, type: string, addresses: string[], externalName: string][] = [
    ["clusterIP alone, from an old server", { clusterIP: "10.96.0.1" }, "clusterIP", ["10.96.0.1"], ""],
    ["an address not yet assigned", { clusterIP: "" }, "clusterIP", [], ""],
    ["no spec at all", undefined, "clusterIP", [], ""],
    ["spec null", null, "clusterIP", [], ""],
    ["one invalid address of two", { clusterIPs: ["bad", "10.96.0.1"] }, "clusterIP", ["10.96.0.1"], ""],
    ["headless", { clusterIP: "None", clusterIPs: ["None"] }, "headless", [], ""],
    ["headless, old form", { clusterIP: "None" }, "headless", [], ""],
    ["NodePort", { type: "NodePort", clusterIP: "10.96.0.1" }, "clusterIP", ["10.96.0.1"], ""],
    [
      "external name",
      { type: "ExternalName", externalName: "WWW.example.com." },
      "externalName",
      [],
      "www.example.com",
    ],
    [
      "external name that is an address",
      { type: "ExternalName", externalName: "192.0.2.9" },
      "externalName",
      [],
      "",
    ],
    [
      "external name that is an IPv6 address",
      { type: "ExternalName", externalName: "2001:db8::1" },
      "externalName",
      [],
      "",
    ],
    ["external name that is no name", { type: "ExternalName", externalName: "a..b" }, "externalName", [], ""],
    ["external name missing", { type: "ExternalName" }, "externalName", [], ""],
  ];
  for (const [title, spec, type, addresses, externalName] of shapes) {
    it(title, () => {
      const reduced = objectOf(reduceService(service(spec), plain));
      assert.equal(reduced.type, type);
      assert.deepEqual(reduced.clusterAddresses.map(formatIpAddress), addresses);
      assert.equal(reduced.externalName, externalName);
    });
  }

  it("skips a service whose clusterIP is no IP address", () => {
    assert.equal(
      problemOf(reduceService(service({ clusterIP: "soon" }), plain)),
      'spec.clusterIP "soon" is not an IP address',
    );
  });

  it("skips a service whose name is no DNS label", () => {
    assert.match(
      problemOf(reduceService(service({}, { name: "a.b" }), plain)),
      /metadata.name "a.b" is not a DNS label/,
    );
    assert.match(
      problemOf(reduceService(service({}, { namespace: "Shop" }), plain)),
      /metadata.namespace "Shop"/,
    );
    assert.match(
      problemOf(reduceService(service({}, { name: 7 }), plain)),
      /metadata.name is missing or not text/,
    );
  });

  it("knows both ways to publish endpoints that are not ready", () => {
    const annotations = { "service.alpha.kubernetes.io/tolerate-unready-endpoints": "true" };
    assert.ok(
      objectOf(reduceService(service({ publishNotReadyAddresses: true }), plain)).publishNotReadyAddresses,
    );
    assert.ok(objectOf(reduceService(service({}, { annotations }), plain)).publishNotReadyAddresses);
    assert.ok(
      !objectOf(reduceService(service({ publishNotReadyAddresses: null }), plain)).publishNotReadyAddresses,
    );
  });

  it("keeps external addresses where they are wanted, those of the load balancer last", () => {
    const value = {
      metadata: { namespace: "shop", name: "web" },
      spec: { externalIPs: ["192.0.2.1", 7], clusterIP: "10.96.0.1" },
      status: {
        loadBalancer: {
          ingress: [{ ip: "192.0.2.2" }, { hostname: "lb.example.com" }, {}, { ip: "192.0.2.1" }],
        },
      },
    };
    const wanting = { ...plain, externalAddresses: true };
    assert.deepEqual(objectOf(reduceService(value, wanting)).externalAddresses, [
      "192.0.2.1",
      "192.0.2.2",
      "lb.example.com",
    ]);
    assert.deepEqual(objectOf(reduceService(value, plain)).externalAddresses, []);
  });
});

function slice(rest: object): unknown {
  const labels = { "kubernetes.io/service-name": "db" };
  return { metadata: { namespace: "shop", name: "db-abc.1", labels }, addressType: "IPv4", ...rest };
}

describe("reduceEndpointSlice", () => {
  it("puts ready endpoints first; no condition means ready", () => {
    const { service: owner, groups } = objectOf(
      reduceEndpointSlice(
        slice({
          endpoints: [
            { addresses: ["10.244.2.13"], hostname: "db-2", conditions: { ready: false, serving: true } },
            { addresses: ["10.244.1.11"], hostname: "db-0", conditions: { ready: true } },
            { addresses: ["10.244.2.12"], hostname: "db-1" },
            { addresses: ["10.244.2.14"], conditions: { ready: null } },
          ],
          ports: [{ name: "sql", port: 3306, protocol: "TCP" }],
        }),
        plain,
      ),
    );
    const group = groups[0];
    assert.equal(owner, "db");
    assert.equal(groups.length, 1);
    assert.ok(group);
    assert.equal(group.readyCount, 3);
    const labels = Array.from({ length: group.count }, (_, index) => endpointLabel(group, index));
    assert.deepEqual(labels, ["db-0", "db-1", "10-244-2-14", "db-2"]);
    assert.deepEqual(group.ports, [{ name: "sql", number: 3306, protocol: "tcp" }]);
  });

  const odd: [title: string, rest: object, groups: number][] = [
    ["host names", { addressType: "FQDN", endpoints: [{ addresses: ["a.example.com"] }] }, 0],
    ["endpoints null", { endpoints: null }, 0],
    ["an endpoint null", { endpoints: [null, { addresses: null }] }, 0],
    ["ports null", { endpoints: [{ addresses: ["10.0.0.1"] }], ports: null }, 1],
    [
      "a port without number",
      { endpoints: [{ addresses: ["10.0.0.1"] }], ports: [{ name: null, port: null }] },
      1,
    ],
    ["an invalid address", { endpoints: [{ addresses: ["10.0.0.1", "10.0.0", 7] }] }, 1],
  ];
  for (const [title, rest, groups] of odd) {
    it(`takes ${title} as far as it goes`, () => {
      const reduced = objectOf(reduceEndpointSlice(slice(rest), plain));
      assert.equal(reduced.groups.length, groups);
      for (const group of reduced.groups) assert.equal(group.count, 1);
      for (const group of reduced.groups) assert.deepEqual(group.ports, []);
    });
  }

  it("names endpoints after their pods only with the option, and only where that makes a label", () => {
    const endpoints = [
      { addresses: ["10.0.0.1"], targetRef: { kind: "Pod", name: "cache-x" } },
      { addresses: ["10.0.0.2"], targetRef: { kind: "Pod", name: "a.b" } },
      { addresses: ["10.0.0.3"], targetRef: { kind: "Pod", name: "x".repeat(64) } },
      { addresses: ["10.0.0.4"], hostname: "No_Label", targetRef: { kind: "Pod", name: "cache-y" } },
    ];
    const labelled = objectOf(reduceEndpointSlice(slice({ endpoints }), { shared, endpointPodNames: true }));
    assert.deepEqual(labelled.groups[0]?.labels, ["cache-x", "", "", "cache-y"]);
    assert.equal(objectOf(reduceEndpointSlice(slice({ endpoints }), plain)).groups[0]?.labels, undefined);
  });

  it("keeps topology zones only when they are wanted", () => {
    const endpoints = [{ addresses: ["10.0.0.1"], zone: "US-west-2a" }, { addresses: ["10.0.0.2"] }];
    const zoned = objectOf(reduceEndpointSlice(slice({ endpoints }), { shared, zones: true }));
    assert.deepEqual(zoned.groups[0]?.zones, ["us-west-2a", ""]);
    assert.equal(objectOf(reduceEndpointSlice(slice({ endpoints }), plain)).groups[0]?.zones, undefined);
  });

  it("says that the owner is missing", () => {
    const value = { metadata: { namespace: "shop", name: "x" } };
    assert.match(
      problemOf(reduceEndpointSlice(value, plain)),
      /label kubernetes.io\/service-name is missing/,
    );
  });
});

describe("reduceEndpoints", () => {
  it("makes a group for each subset and family", () => {
    const reduced = objectOf(
      reduceEndpoints(
        {
          metadata: { namespace: "shop", name: "db" },
          subsets: [
            {
              addresses: [{ ip: "10.0.0.1", hostname: "db-0" }, { ip: "fd00::1" }],
              notReadyAddresses: [{ ip: "10.0.0.2" }],
              ports: [{ name: "sql", port: 3306 }],
            },
            { addresses: [{ ip: "10.0.0.3" }, {}] },
            null,
          ],
        },
        plain,
      ),
    );
    assert.equal(reduced.service, "db");
    const shape = reduced.groups.map((group) => [
      group.addressLength,
      group.readyCount,
      group.count,
      group.ports.length,
    ]);
    assert.deepEqual(shape, [
      [4, 1, 2, 1],
      [16, 1, 1, 1],
      [4, 1, 1, 0],
    ]);
  });
});

describe("reducePod", () => {
  const running = {
    phase: "Running",
    podIP: "10.244.3.40",
    podIPs: [{ ip: "10.244.3.40" }, { ip: "fd00:10:244:3::40" }],
  };
  const cases: [title: string, metadata: object, status: unknown, addresses: string[]][] = [
    ["both addresses of a running pod", {}, running, ["10.244.3.40", "fd00:10:244:3::40"]],
    ["the one address that an old server tells", {}, { podIP: "10.244.3.40" }, ["10.244.3.40"]],
    ["nothing of a pod that has none yet", {}, { phase: "Pending" }, []],
    ["nothing of a finished pod", {}, { ...running, phase: "Succeeded" }, []],
    ["nothing of a failed pod", {}, { ...running, phase: "Failed" }, []],
    ["nothing of a pod on its way out", { deletionTimestamp: "2026-01-01T00:00:00Z" }, running, []],
    ["nothing where the status is missing", {}, undefined, []],
  ];
  for (const [title, metadata, status, addresses] of cases) {
    it(`takes ${title}`, () => {
      const value = { metadata: { namespace: "shop", name: "client-1", ...metadata }, status };
      assert.deepEqual(objectOf(reducePod(value, plain)).addresses.map(formatAddressKey), addresses);
    });
  }

  it("marks a pod on its node's network, and no other", () => {
    const metadata = { namespace: "shop", name: "client-1" };
    const reduce = (spec: unknown) => objectOf(reducePod({ metadata, spec, status: running }, plain));
    assert.equal(reduce({ hostNetwork: true }).hostNetwork, true);
    for (const spec of [undefined, {}, { hostNetwork: false }])
      assert.equal("hostNetwork" in reduce(spec), false);
  });

  it("keeps labels only when they are wanted, and equal ones once", () => {
    const value = {
      metadata: { namespace: "shop", name: "a", labels: { app: "web", bad: 7 } },
      status: running,
    };
    assert.equal(objectOf(reducePod(value, plain)).labels.size, 0);
    const first = objectOf(reducePod(structuredClone(value), { shared, podLabels: true }));
    const second = objectOf(reducePod(structuredClone(value), { shared, podLabels: true }));
    assert.deepEqual([...first.labels], [["app", "web"]]);
    assert.equal(first.labels, second.labels);
  });
});

describe("any reducer", () => {
  const text = fc.constantFrom(
    "None",
    "10.0.0.1",
    "fd00::1",
    "web",
    "",
    "a.b",
    "ExternalName",
    "http",
    "-",
    "\u0000",
  );
  const { tree } = fc.letrec<{ tree: unknown; node: unknown }>((tie) => ({
    tree: fc.oneof({ maxDepth: 6 }, text, fc.integer(), fc.constant(null), fc.boolean(), tie("node")),
    node: fc.oneof(
      fc.array(tie("tree"), { maxLength: 3 }),
      fc.dictionary(
        fc.constantFrom(
          ...[
            "metadata",
            "name",
            "namespace",
            "labels",
            "spec",
            "status",
            "ports",
            "port",
            "clusterIPs",
            "addresses",
          ],
          ...[
            "endpoints",
            "conditions",
            "ready",
            "hostname",
            "subsets",
            "podIPs",
            "ip",
            "__proto__",
            "targetRef",
          ],
        ),
        tie("tree"),
      ),
    ),
  }));

  it("throws on no value whatever", () => {
    const options: ReduceOptions = { shared, endpointPodNames: true, zones: true, podLabels: true };
    fc.assert(
      fc.property(tree, (value) => {
        const metadata = { namespace: "shop", name: "x", labels: { "kubernetes.io/service-name": "web" } };
        for (const candidate of [
          value,
          { metadata, spec: value, status: value, subsets: value, endpoints: value },
        ]) {
          for (const reduce of [
            reduceNamespace,
            reduceService,
            reduceEndpointSlice,
            reduceEndpoints,
            reducePod,
          ]) {
            const reduced = reduce(candidate, options);
            assert.ok("object" in reduced !== "problem" in reduced);
          }
        }
      }),
    );
  });
});
