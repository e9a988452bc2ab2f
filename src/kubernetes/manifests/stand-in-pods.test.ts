import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formatIpAddress } from "../../lib/net/ip-address.ts";
import { SharedValues } from "../objects/shared-values.ts";
import { endpointLabel } from "../store/services/service-endpoints.ts";
import { assembleClusterState, type ClusterState, type ClusterStateOptions } from "./cluster-state.ts";
import { type ManifestContent, readDocument } from "./manifest-object.ts";
import { parseDocuments } from "./parse-documents.ts";

function state(yaml: string, options: ClusterStateOptions = {}): ClusterState {
  const content: ManifestContent = { objects: [], namespaces: new Set(), problems: [] };
  for (const document of parseDocuments(yaml))
    readDocument(document, "app.yaml", { shared: new SharedValues() }, content);
  assert.deepEqual(content.problems, []);
  return assembleClusterState(content.objects, content.namespaces, options);
}

/** One text for each endpoint: `label address`. */
function endpointsOf({ endpoints }: ClusterState): string[] {
  return endpoints.flatMap(({ groups }) =>
    groups.flatMap((group) =>
      Array.from({ length: group.count }, (_, index) => {
        const at = index * group.addressLength;
        const address = formatIpAddress(group.addresses.subarray(at, at + group.addressLength));
        return `${endpointLabel(group, index)} ${address} ${group.ports.map(({ number }) => number).join()}`;
      }),
    ),
  );
}

const service = (name: string, spec = "clusterIP: None", namespace = "shop"): string => `apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: ${namespace}}
spec: {${spec}, selector: {app: ${name}}, ports: [{name: http, port: 80, targetPort: web}]}
---
`;
const workload = (
  name: string,
  kind = "Deployment",
  spec = "replicas: 3",
  namespace = "shop",
): string => `apiVersion: apps/v1
kind: ${kind}
metadata: {name: ${name}, namespace: ${namespace}}
spec:
  ${spec}
  template:
    metadata: {labels: {app: ${name}}}
    spec: {containers: [{name: c, ports: [{name: web, containerPort: 8080}]}]}
---
`;
const pod = (app: string): string => `apiVersion: v1
kind: Pod
metadata: {name: one, namespace: shop, labels: {app: ${app}}}
spec: {containers: [{name: c, ports: [{name: web, containerPort: 8080}]}]}
status: {podIP: 10.0.0.1}
---
`;

describe("a headless service with a Deployment and no pods", () => {
  it("has no endpoints, and one warning says what is missing and how to get it", () => {
    const { problems, ...rest } = state(`${service("web")}${workload("web")}`);
    assert.deepEqual(endpointsOf({ problems, ...rest }), []);
    assert.deepEqual(
      problems.map(({ severity, line, message }) => [severity, line, message]),
      [
        [
          "warning",
          1,
          "headless service shop/web has no endpoints: the files have no pods, and only a cluster makes 3 of Deployment web. " +
            "Add Pods or EndpointSlices, or let replicas stand in for pods with the option replicas_as_endpoints",
        ],
      ],
    );
  });

  it("shares the warning with others", () => {
    const { problems } = state(["a", "b", "c"].map((name) => service(name) + workload(name)).join(""));
    assert.equal(problems.length, 1);
    assert.match(problems[0]?.message ?? "", /^headless service shop\/a \(and 2 more\) has no endpoints/);
  });

  for (const [title, yaml] of [
    ["that has a clusterIP", service("web", "clusterIP: 10.96.0.1") + workload("web")],
    ["that has a pod", service("web") + workload("web") + pod("web")],
    ["whose selector the Deployment does not match", service("web") + workload("other")],
    [
      "in another namespace than the Deployment",
      service("web") + workload("web", "Deployment", "replicas: 3", "other"),
    ],
  ] as const) {
    it(`gets no warning ${title}`, () => assert.deepEqual(state(yaml).problems, []));
  }
});

describe("replicas_as_endpoints", () => {
  const options = { replicasAsEndpoints: true };
  const made = (yaml: string): string[] => endpointsOf(state(yaml, options));

  it("makes one endpoint for each replica, with the ports of the template", () => {
    const endpoints = made(service("web") + workload("web"));
    assert.equal(endpoints.length, 3);
    assert.equal(new Set(endpoints).size, 3);
    for (const each of endpoints) assert.match(each, /^198-1[89]-\d+-\d+ 198\.1[89]\.\d+\.\d+ 8080$/);
    assert.deepEqual(state(service("web") + workload("web"), options).problems, []);
  });

  it("keeps the addresses when other objects come", () => {
    const before = made(service("web") + workload("web"));
    assert.deepEqual(made(workload("another") + service("web") + workload("web")), before);
  });

  for (const [title, yaml, expected] of [
    ["a DaemonSet has one", workload("web", "DaemonSet", "minReadySeconds: 1"), 1],
    ["one is the default", workload("web", "ReplicaSet", "minReadySeconds: 1"), 1],
    ["zero makes no endpoint", workload("web", "Deployment", "replicas: 0"), 0],
    ["a million are a thousand", workload("web", "Deployment", "replicas: 1000000"), 1000],
    ["a word is the default", workload("web", "Deployment", "replicas: many"), 1],
    ["a pod of the files goes before", workload("web") + pod("web"), 1],
    ["another Deployment has no part", workload("other"), 0],
  ] as const) {
    it(title, () => assert.equal(made(service("web") + yaml).length, expected));
  }

  it("gives those of a StatefulSet their names", () => {
    const endpoints = made(service("db") + workload("db", "StatefulSet", "replicas: 2\n  serviceName: db"));
    assert.deepEqual(
      endpoints.map((each) => each.split(" ")[0]),
      ["db-0", "db-1"],
    );
  });

  it("is for services with a clusterIP, too", () =>
    assert.equal(made(service("web", "clusterIP: 10.96.0.1") + workload("web")).length, 3));
});
