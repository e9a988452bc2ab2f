import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { toChartValues } from "./to-chart-values.ts";

const noticesOf = (values: unknown): string[] =>
  toChartValues(values).notices.map(({ path, severity }) => `${severity} ${path}`);

describe("values of CoreDNS's chart", () => {
  for (const [title, given, expected] of [
    [
      "stay under the same name",
      { replicaCount: 3, service: { clusterIP: "10.0.0.10" } },
      { replicaCount: 3, service: { clusterIP: "10.0.0.10" } },
    ],
    ["get another name", { rollingUpdate: { maxSurge: "25%" } }, { updateStrategy: { maxSurge: "25%" } }],
    [
      "get another form",
      { image: { pullSecrets: ["a", { name: "b" }] } },
      { imagePullSecrets: [{ name: "a" }, { name: "b" }] },
    ],
    [
      "keep a false",
      { rbac: { create: false }, prometheus: { monitor: { enabled: false } } },
      { rbac: { create: false }, serviceMonitor: { enabled: false } },
    ],
    [
      "are one budget",
      { podDisruptionBudget: { maxUnavailable: 1 } },
      { podDisruptionBudget: { enabled: true, maxUnavailable: 1 } },
    ],
    [
      "are two addresses",
      { service: { clusterIPs: ["10.0.0.10", "fd00::a"] } },
      {
        service: { clusterIP: "10.0.0.10", ipFamilies: ["IPv4", "IPv6"], ipFamilyPolicy: "RequireDualStack" },
      },
    ],
    [
      "are an autoscaler",
      { autoscaler: { enabled: true, min: 0, image: { repository: "r/cpa", tag: "v1" } } },
      { autoscaler: { enabled: true, linear: { min: 0 }, image: "r/cpa:v1" } },
    ],
    [
      "are of no use here",
      { terminationGracePeriodSeconds: 30, rbac: { create: true, pspEnable: true } },
      { rbac: { create: true } },
    ],
    [
      "name CoreDNS's image",
      { image: { repository: "coredns/coredns", tag: "1.12.0", pullPolicy: "Always" } },
      { image: { pullPolicy: "Always" } },
    ],
  ] as const) {
    it(title, () => assert.deepEqual(toChartValues(given).values, expected));
  }

  it("that have no counterpart are refused with the reason", () => {
    const given = {
      serviceType: "LoadBalancer",
      isClusterService: false,
      zoneFiles: [{ filename: "example.db" }],
      service: { externalIPs: ["192.0.2.1"] },
      deployment: { enabled: false },
    };
    const { values, notices } = toChartValues(given);
    assert.deepEqual(values, {});
    assert.deepEqual(
      notices.map(({ path, severity }) => `${severity} ${path}`),
      ["serviceType", "isClusterService", "zoneFiles", "service.externalIPs", "deployment.enabled"].map(
        (path) => `refused ${path}`,
      ),
    );
    for (const { reason } of notices) assert.ok(reason.length > 10);
  });

  it("that ask for nothing are not mentioned", () =>
    assert.deepEqual(
      noticesOf({
        ...{
          serviceType: "ClusterIP",
          isClusterService: true,
          zoneFiles: [],
          extraConfig: {},
          initContainers: [],
        },
        ...{ deployment: { enabled: true, name: "", annotations: {} }, k8sAppLabelOverride: "kube-dns" },
        ...{ service: { loadBalancerIP: "" }, prometheus: { service: { enabled: false, annotations: {} } } },
      }),
      [],
    ));

  it("that CoreDNS's chart does not have are refused by name", () =>
    assert.deepEqual(noticesOf({ replicas: 2, service: { tpye: "x" } }), [
      "refused replicas",
      "refused service.tpye",
    ]));
});

describe("the service account", () => {
  for (const [title, given, expected] of [
    [
      "is default where the chart makes none",
      { create: false, name: "" },
      { create: false, name: "default" },
    ],
    ["is the named one", { create: false, name: "dns" }, { create: false, name: "dns" }],
    ["is one of the release", { create: true, name: "" }, { create: true }],
  ] as const) {
    it(title, () =>
      assert.deepEqual(toChartValues({ serviceAccount: given }).values, { serviceAccount: expected }),
    );
  }
});

describe("server blocks", () => {
  const server = (more: object) => ({ zones: [{ zone: "." }], plugins: [{ name: "whoami" }], ...more });

  it("stay, without what belongs to the Service", () => {
    const { values, notices } = toChartValues({ servers: [server({ port: 53, servicePort: 53 })] });
    assert.deepEqual(values, { servers: [server({ port: 53 })] });
    assert.deepEqual(notices, []);
  });

  it("on other ports open them in the Service, by their protocols", () => {
    const tls = { zones: [{ zone: ".", scheme: "tls://" }], port: 853, plugins: [] };
    const { values } = toChartValues({ servers: [server({ port: 5353 }), tls] });
    assert.deepEqual(values.extraPorts, [
      { name: "udp-5353", port: 5353, protocol: "UDP" },
      { name: "tcp-5353", port: 5353, protocol: "TCP" },
      { name: "tcp-853", port: 853, protocol: "TCP" },
    ]);
  });

  it("without zones are for the root", () => {
    const { values } = toChartValues({
      servers: [{ plugins: [] }, { zones: [{ scheme: "dns://" }], plugins: [] }],
    });
    assert.deepEqual(values.servers, [
      { zones: [{ zone: "." }], plugins: [] },
      { zones: [{ zone: ".", scheme: "dns://" }], plugins: [] },
    ]);
  });

  it("with another port of the Service, the node or the host are refused", () =>
    assert.deepEqual(
      noticesOf({ servers: [server({ port: 53, servicePort: 5353, nodePort: 30053, hostPort: 53 })] }),
      ["refused servers[0].servicePort", "refused servers[0].nodePort", "refused servers[0].hostPort"],
    ));
});
