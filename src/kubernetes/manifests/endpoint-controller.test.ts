import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formatIpAddress } from "../../lib/net/ip-address.ts";
import type { EndpointSet } from "../objects/objects.ts";
import { reduceService } from "../objects/reduce.ts";
import { SharedValues } from "../objects/shared-values.ts";
import { endpointLabel } from "../store/services/service-endpoints.ts";
import {
  hasSelector,
  type ManifestPod,
  makeEndpoints,
  type SelectingService,
} from "./endpoint-controller.ts";

function service(spec: object): SelectingService {
  const value = { metadata: { namespace: "shop", name: "db" }, spec: { selector: { app: "db" }, ...spec } };
  const reduced = reduceService(value, { shared: new SharedValues() });
  if ("problem" in reduced) assert.fail(reduced.problem);
  return { object: reduced.object, value };
}

function pod(
  name: string,
  ips: string[],
  spec: object = {},
  status: object = {},
  labels = { app: "db" },
): ManifestPod {
  const podIPs = ips.map((ip) => ({ ip }));
  const value = { spec, status: { phase: "Running", podIP: ips[0], podIPs, ...status } };
  return { namespace: "shop", name, labels: new Map(Object.entries(labels)), value };
}

/** One text for each endpoint: `label address ready ports`. */
function describeSet({ groups }: EndpointSet): string[] {
  return groups.flatMap((group) =>
    Array.from({ length: group.count }, (_, index) => {
      const at = index * group.addressLength;
      const address = formatIpAddress(group.addresses.subarray(at, at + group.addressLength));
      const ports = group.ports
        .map(({ name, number, protocol }) => `${name}:${number}/${protocol}`)
        .join(",");
      return `${endpointLabel(group, index)} ${address} ${index < group.readyCount ? "ready" : "waiting"} ${ports}`.trim();
    }),
  );
}

describe("makeEndpoints", () => {
  const headless = { clusterIP: "None", ports: [{ name: "sql", port: 3306 }] };

  it("takes the pods that carry every label of the selector", () => {
    const pods = [
      pod("a", ["10.0.0.1"], {}, {}, { app: "db" }),
      pod("b", ["10.0.0.2"], {}, {}, { app: "web" }),
      pod("c", ["10.0.0.3"], {}, { phase: "Succeeded" }),
      pod("d", []),
    ];
    assert.deepEqual(describeSet(makeEndpoints(service(headless), pods, {})), [
      "10-0-0-1 10.0.0.1 ready sql:3306/tcp",
    ]);
  });

  const hostnames: [title: string, spec: object, label: string][] = [
    ["hostname and subdomain", { hostname: "db-0", subdomain: "db" }, "db-0"],
    ["hostname alone", { hostname: "db-0" }, "10-0-0-1"],
    ["subdomain of another service", { hostname: "db-0", subdomain: "other" }, "10-0-0-1"],
    ["subdomain alone", { subdomain: "db" }, "10-0-0-1"],
  ];
  for (const [title, spec, label] of hostnames) {
    it(`with ${title}: ${label}`, () => {
      const [only] = describeSet(makeEndpoints(service(headless), [pod("p", ["10.0.0.1"], spec)], {}));
      assert.equal(only, `${label} 10.0.0.1 ready sql:3306/tcp`);
    });
  }

  it("names endpoints after their pods with the option", () => {
    const pods = [pod("p", ["10.0.0.1"])];
    const [only] = describeSet(makeEndpoints(service(headless), pods, { endpointPodNames: true }));
    assert.equal(only, "p 10.0.0.1 ready sql:3306/tcp");
  });

  const readiness: [title: string, status: object, spec: object, state: string][] = [
    ["no conditions, as in most manifests", {}, headless, "ready"],
    ["Ready true", { conditions: [{ type: "Ready", status: "True" }] }, headless, "ready"],
    ["Ready false", { conditions: [{ type: "Ready", status: "False" }] }, headless, "waiting"],
    ["not begun", { phase: "Pending" }, headless, "waiting"],
    [
      "not begun but published",
      { phase: "Pending" },
      { ...headless, publishNotReadyAddresses: true },
      "ready",
    ],
  ];
  for (const [title, status, spec, state] of readiness) {
    it(`${title}: ${state}`, () => {
      const [only] = describeSet(makeEndpoints(service(spec), [pod("p", ["10.0.0.1"], {}, status)], {}));
      assert.equal(only, `10-0-0-1 10.0.0.1 ${state} sql:3306/tcp`);
    });
  }

  it("resolves target ports by number and by name, pod by pod", () => {
    const ports = [
      { name: "web", port: 80, targetPort: 8080 },
      { name: "tls", port: 443, targetPort: "https" },
      { name: "dns", port: 53, protocol: "UDP", targetPort: "https" },
      { name: "text", port: 81, targetPort: "8081" },
    ];
    const listening = (containerPort: number) => ({
      containers: [{ ports: [{ name: "https", containerPort }] }],
    });
    const pods = [
      pod("a", ["10.0.0.1"], listening(8443)),
      pod("b", ["10.0.0.2"], listening(9443)),
      pod("c", ["10.0.0.3"]),
    ];
    assert.deepEqual(describeSet(makeEndpoints(service({ clusterIP: "10.96.0.5", ports }), pods, {})), [
      "10-0-0-1 10.0.0.1 ready web:8080/tcp,tls:8443/tcp,text:8081/tcp",
      "10-0-0-2 10.0.0.2 ready web:8080/tcp,tls:9443/tcp,text:8081/tcp",
      "10-0-0-3 10.0.0.3 ready web:8080/tcp,text:8081/tcp",
    ]);
  });

  const both = ["10.0.0.1", "fd00::1"];
  const families: [title: string, spec: object, ips: string[], addresses: string[]][] = [
    ["the pod's first family where a headless service says nothing", {}, both, ["10.0.0.1"]],
    ["the same the other way round", {}, ["fd00::1", "10.0.0.1"], ["fd00::1"]],
    ["ipFamilies", { ipFamilies: ["IPv6"] }, both, ["fd00::1"]],
    ["both ipFamilies", { ipFamilies: ["IPv6", "IPv4"] }, both, both],
    ["the policy", { ipFamilyPolicy: "PreferDualStack" }, both, both],
    [
      "the families of the cluster addresses",
      { clusterIP: "", clusterIPs: ["fd00:96::1"] },
      both,
      ["fd00::1"],
    ],
  ];
  for (const [title, spec, ips, addresses] of families) {
    it(`takes ${title}`, () => {
      const set = makeEndpoints(service({ clusterIP: "None", ...spec }), [pod("p", ips)], {});
      assert.deepEqual(
        describeSet(set).map((text) => text.split(" ")[1]),
        addresses,
      );
    });
  }
});

describe("hasSelector", () => {
  it("is false without selector and for an external name", () => {
    assert.ok(hasSelector(service({ clusterIP: "None" })));
    assert.ok(!hasSelector(service({ clusterIP: "None", selector: {} })));
    assert.ok(!hasSelector(service({ clusterIP: "None", selector: null })));
    assert.ok(!hasSelector(service({ type: "ExternalName", externalName: "a.example" })));
  });
});
