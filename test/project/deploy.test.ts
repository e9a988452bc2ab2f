/** The objects in deploy/ fit together, need no right that they do not use, and end without losing a query. */
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { before, describe, test } from "node:test";
import { parse } from "yaml";
import { localLinks } from "../../scripts/lib/markdown.ts";
import { PluginTest } from "../../src/plugin/testing.ts";
import kubernetes from "../../src/plugins/kubernetes/index.ts";
import type { Configuration } from "../../src/server/configuration/configuration.ts";
import { GRACE } from "../../src/server/run/data-plane.ts";
import {
  allChartObjects,
  assertSelects,
  at,
  CHART,
  corefileOf,
  nameOf,
  objectCalled,
  type Part,
  partAt,
  plainObjects,
  readCorefile,
} from "../support/deployment.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import type { RequestFacts } from "../support/kubernetes-api/faults.ts";
import { skipWithoutKubectl } from "../support/kubernetes-api/kubectl.ts";
import { projectRoot } from "../support/portolan.ts";
import { run } from "../support/program.ts";

/** Octets: the most that a pod for 500 Services took with a full cache and reloads, see deploy/helm/portolan/README.md. */
const MEASURED_PEAK = 165e6;

const CLUSTER_WIDE = ["ClusterRole", "ClusterRoleBinding"];

const sources: readonly (readonly [string, () => Part[]])[] = [
  ["the plain manifests", plainObjects],
  ["the chart", allChartObjects],
];

for (const [source, makeObjects] of sources) {
  describe(source, () => {
    let objects: Part[] = [];
    let deployment: Part = {};
    let pod: Part = {};
    let container: Part = {};
    let configuration: Configuration;
    before(async () => {
      objects = makeObjects();
      deployment = objectCalled(objects, "Deployment portolan");
      pod = partAt(deployment, "spec.template");
      container = partAt(pod, "spec.containers.0");
      configuration = await readCorefile(corefileOf(objects));
    });

    /** An option of a plugin in the Corefile. */
    function configured(plugin: string, option: string): unknown {
      const found = configuration.blocks
        .flatMap((block) => block.plugins)
        .find(({ definition }) => definition.name === plugin);
      return at(found, `configs.0.${option}`);
    }

    test("has these objects", () => {
      assert.deepEqual(objects.map(nameOf).sort(), [
        "ClusterRole portolan",
        "ClusterRole portolan-autoscaler",
        "ClusterRole portolan-istio",
        "ClusterRole portolan-multicluster",
        "ClusterRole portolan-pods",
        "ClusterRoleBinding portolan",
        "ClusterRoleBinding portolan-autoscaler",
        "ClusterRoleBinding portolan-istio",
        "ClusterRoleBinding portolan-multicluster",
        "ClusterRoleBinding portolan-pods",
        "ConfigMap portolan",
        "ConfigMap portolan-autoscaler",
        "Deployment portolan",
        "Deployment portolan-autoscaler",
        "HorizontalPodAutoscaler portolan",
        "NetworkPolicy portolan",
        "PodDisruptionBudget portolan",
        "PrometheusRule portolan",
        "Role portolan-autoscaler",
        "RoleBinding portolan-autoscaler",
        "Service kube-dns",
        "ServiceAccount portolan",
        "ServiceAccount portolan-autoscaler",
        "ServiceMonitor portolan",
      ]);
    });

    test("says of every object what it is and where", () => {
      for (const object of objects) {
        assert.equal(typeof object.apiVersion, "string", nameOf(object));
        const namespace = CLUSTER_WIDE.includes(String(object.kind)) ? undefined : "kube-system";
        assert.equal(at(object, "metadata.namespace"), namespace, nameOf(object));
        const labels = partAt(object, "metadata.labels");
        assert.match(String(labels["app.kubernetes.io/name"]), /^portolan(-autoscaler)?$/, nameOf(object));
      }
    });

    test("has a Corefile without fault or warning", () => {
      assert.deepEqual(configuration.warnings, []);
      assert.deepEqual(
        configuration.blocks.flatMap(({ keys }) => keys.map(({ zone, port }) => [zone, port])),
        [[".", 53]],
      );
    });

    test("allows Portolan to list and to watch, and nothing else", () => {
      for (const name of ["portolan", "portolan-pods", "portolan-multicluster"]) {
        const role = objectCalled(objects, `ClusterRole ${name}`);
        for (const rule of Object.values(partAt(role, "rules")))
          assert.deepEqual(at(rule, "verbs"), ["list", "watch"], name);
        const binding = objectCalled(objects, `ClusterRoleBinding ${name}`);
        assert.deepEqual(
          [binding.roleRef, binding.subjects],
          [
            { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
            [{ kind: "ServiceAccount", name: at(pod, "spec.serviceAccountName"), namespace: "kube-system" }],
          ],
        );
      }
      objectCalled(objects, `ServiceAccount ${at(pod, "spec.serviceAccountName")}`);
    });

    for (const [option, roles, watches] of [
      ["pods insecure", ["portolan"], 3],
      ["pods verified", ["portolan", "portolan-pods"], 4],
      ["multicluster cluster.local", ["portolan", "portolan-multicluster"], 5],
    ] as const) {
      test(`allows just what is asked for with ${option}`, async () => {
        const allowed = roles.flatMap((name) => rightsOf(objectCalled(objects, `ClusterRole ${name}`)));
        assert.deepEqual(await rightsNeeded(option, allowed, watches), allowed.toSorted());
      });
    }

    test("gives the pod no more than it needs of its node", () => {
      const { sysctls, ...security } = partAt(pod, "spec.securityContext");
      assert.deepEqual(security, {
        runAsNonRoot: true,
        runAsUser: 65532,
        runAsGroup: 65532,
        seccompProfile: { type: "RuntimeDefault" },
      });
      assert.deepEqual(sysctls, [{ name: "net.ipv4.ip_unprivileged_port_start", value: "53" }]);
      assert.deepEqual(container.securityContext, {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
      for (const name of ["hostNetwork", "hostPID", "hostIPC"])
        assert.equal(at(pod, `spec.${name}`), undefined);
      for (const volume of Object.values(partAt(pod, "spec.volumes")))
        assert.deepEqual(Object.keys(Object(volume)), ["name", "configMap"]);
    });

    test("says what the pod takes, and keeps it where it is needed", () => {
      assert.deepEqual(at(container, "resources.limits"), { memory: "256Mi" });
      assert.deepEqual(at(container, "resources.requests"), { cpu: "100m", memory: "160Mi" });
      assert.ok(160 * 2 ** 20 >= MEASURED_PEAK && 256 * 2 ** 20 >= 1.5 * MEASURED_PEAK);
      assert.equal(at(pod, "spec.priorityClassName"), "system-cluster-critical");
      assert.equal(at(pod, "spec.dnsPolicy"), "Default");
      const spread = Object.values(partAt(pod, "spec.topologySpreadConstraints"));
      assert.deepEqual(
        spread.map((each) => at(each, "topologyKey")),
        ["kubernetes.io/hostname", "topology.kubernetes.io/zone"],
      );
      for (const each of spread) assertSelects(partAt(each, "labelSelector.matchLabels"), pod);
    });

    test("gives a pod that ends the time for lameduck and for queries under way", () => {
      const lameduck = Number(configured("health", "lameduck")) / 1000;
      assert.ok(lameduck >= 5, "the Corefile has a lameduck");
      assert.ok(Number(at(pod, "spec.terminationGracePeriodSeconds")) > lameduck + GRACE / 1000);
      assert.equal(container.lifecycle, undefined);
    });

    test("takes a pod that ends out of the Service before half of its lameduck is over", () => {
      const { periodSeconds, failureThreshold } = partAt(container, "readinessProbe");
      const lameduck = Number(configured("health", "lameduck")) / 1000;
      assert.ok(Number(periodSeconds) * Number(failureThreshold) <= lameduck / 2);
    });

    test("probes where the Corefile serves", () => {
      const ports = Object.values(partAt(container, "ports"));
      for (const [probe, path, plugin] of [
        ["readinessProbe", "/ready", "ready"],
        ["livenessProbe", "/health", "health"],
      ] as const) {
        const { httpGet } = partAt(container, probe);
        assert.equal(at(httpGet, "path"), path);
        const port = ports.find((each) => at(each, "name") === at(httpGet, "port"));
        assert.equal(configured(plugin, "address"), `:${at(port, "containerPort")}`);
      }
      const metrics = ports.find((each) => at(each, "name") === "metrics");
      assert.equal(configured("prometheus", "address"), `:${at(metrics, "containerPort")}`);
    });

    test("reads the ConfigMap that it brings, at CoreDNS's path", () => {
      assert.deepEqual(container.args, ["-conf", "/etc/coredns/Corefile"]);
      assert.deepEqual(at(container, "volumeMounts"), [
        { name: "config", mountPath: "/etc/coredns", readOnly: true },
      ]);
      const volume = Object.values(partAt(pod, "spec.volumes"))[0];
      objectCalled(objects, `ConfigMap ${at(volume, "configMap.name")}`);
    });

    test("selects its pods, and keeps out of kubeadm's way", () => {
      assertSelects(partAt(deployment, "spec.selector.matchLabels"), pod);
      const service = objectCalled(objects, "Service kube-dns");
      assertSelects(partAt(service, "spec.selector"), pod);
      assert.deepEqual(at(service, "spec.selector"), { "k8s-app": "kube-dns" });
      assertSelects(
        partAt(objectCalled(objects, "PodDisruptionBudget portolan"), "spec.selector.matchLabels"),
        pod,
      );
      assertSelects(
        partAt(objectCalled(objects, "NetworkPolicy portolan"), "spec.podSelector.matchLabels"),
        pod,
      );
      // kubeadm takes the one Deployment with that label for its CoreDNS, and fails where there are two.
      assert.equal(Object(at(deployment, "metadata.labels"))["k8s-app"], undefined);
    });

    test("serves DNS and metrics under the names and ports that dashboards and kubelets know", () => {
      const service = objectCalled(objects, "Service kube-dns");
      const ports = [
        { name: "dns", port: 53, protocol: "UDP" },
        { name: "dns-tcp", port: 53, protocol: "TCP" },
        { name: "metrics", port: 9153, protocol: "TCP" },
      ];
      assert.deepEqual(at(service, "spec.ports"), ports);
      assert.equal(at(service, "spec.clusterIP"), "CLUSTER_DNS_IP");
      const containerPorts = Object.values(partAt(container, "ports")).slice(0, ports.length);
      assert.deepEqual(
        containerPorts,
        ports.map(({ name, port, protocol }) => ({ name, containerPort: port, protocol })),
      );
      const monitor = objectCalled(objects, "ServiceMonitor portolan");
      assertSelects(partAt(monitor, "spec.selector.matchLabels"), service);
      assert.equal(at(monitor, "spec.endpoints.0.port"), "metrics");
    });

    test("scales by the load what it brings", () => {
      const { scaleTargetRef, minReplicas, maxReplicas } = partAt(
        objectCalled(objects, "HorizontalPodAutoscaler portolan"),
        "spec",
      );
      assert.deepEqual(scaleTargetRef, {
        apiVersion: deployment.apiVersion,
        kind: deployment.kind,
        name: at(deployment, "metadata.name"),
      });
      assert.ok(Number(minReplicas) >= 2 && Number(maxReplicas) > Number(minReplicas));
    });

    test("warns by metrics that the program has", () => {
      const groups = partAt(objectCalled(objects, "PrometheusRule portolan"), "spec.groups");
      const rules = Object.values(groups).flatMap((group) => Object.values(partAt(group, "rules")));
      const known = ["src", "docs"].flatMap((folder) =>
        globSync(`${folder}/**/*.{ts,md}`, { cwd: projectRoot }).map((file) =>
          readFileSync(join(projectRoot, file), "utf8"),
        ),
      );
      const metrics = new Set(
        rules.flatMap(
          (rule) => String(at(rule, "expr")).match(/\b(?:coredns|portolan)_[a-z_]+?(?=_bucket|\b)/g) ?? [],
        ),
      );
      assert.ok(metrics.size > 0);
      const unknown = [...metrics].filter((metric) => !known.some((text) => text.includes(`"${metric}"`)));
      assert.deepEqual(unknown, []);
    });

    test("lets in what the pod listens for", () => {
      const policy = objectCalled(objects, "NetworkPolicy portolan");
      const allowed = Object.values(partAt(policy, "spec.ingress")).flatMap((rule) => {
        assert.deepEqual(Object.keys(Object(rule)), ["ports"], "from everywhere");
        return Object.values(partAt(rule, "ports")).map(
          (each) => `${at(each, "port")}/${at(each, "protocol")}`,
        );
      });
      const open = Object.values(partAt(container, "ports")).map(
        (each) => `${at(each, "containerPort")}/${at(each, "protocol")}`,
      );
      assert.deepEqual(allowed.sort(), open.sort());
    });

    test("scales the Deployment that is there, with rights on it alone", () => {
      const scaler = objectCalled(objects, "Deployment portolan-autoscaler");
      const command = at(scaler, "spec.template.spec.containers.0.command");
      assert.ok(Array.isArray(command));
      assert.ok(command.includes("--target=deployment/portolan"));
      assert.ok(command.includes("--configmap=portolan-autoscaler"));
      const linear = at(objectCalled(objects, "ConfigMap portolan-autoscaler"), "data.linear");
      assert.deepEqual(JSON.parse(String(linear)), {
        coresPerReplica: 256,
        nodesPerReplica: 16,
        preventSinglePointFailure: true,
        includeUnschedulableNodes: true,
      });
      for (const rule of Object.values(partAt(objectCalled(objects, "Role portolan-autoscaler"), "rules")))
        assert.match(String(at(rule, "resourceNames")), /^portolan(-autoscaler)?$/);
    });
  });
}

test("kubectl puts the manifests together for a cluster that has a Service", {
  skip: skipWithoutKubectl,
}, async () => {
  const folder = join(projectRoot, "deploy", "kubernetes");
  const { code, output, errors } = await run("kubectl", ["kustomize", folder]);
  assert.equal(code, 0, errors);
  const kinds = Array.from(output.matchAll(/^kind: (.*)$/gm), ([, kind = ""]) => kind);
  assert.deepEqual(kinds.sort(), [
    ...["ClusterRole", "ClusterRoleBinding", "ConfigMap", "Deployment"],
    ...["PodDisruptionBudget", "ServiceAccount"],
  ]);
});

for (const page of globSync("deploy/**/*.md", { cwd: projectRoot }).sort()) {
  test(`the links of ${page} lead somewhere`, () => {
    const links = localLinks(readFileSync(join(projectRoot, page), "utf8"));
    assert.deepEqual(
      links.filter((link) => !existsSync(join(projectRoot, dirname(page), link))),
      [],
    );
  });
}

test("the chart has the version of the program", () => {
  const { version } = JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8"));
  const chart = parse(readFileSync(join(CHART, "Chart.yaml"), "utf8"));
  assert.equal(chart.appVersion, version);
  const plain = objectCalled(plainObjects(), "Deployment portolan");
  assert.equal(at(plain, "spec.template.spec.containers.0.image"), `portolan:${version}`);
});

/** Such as `list discovery.k8s.io/endpointslices`. */
function rightsOf(role: Part): string[] {
  const list = (rule: unknown, name: string) => Object.values(partAt(rule, name));
  return Object.values(partAt(role, "rules")).flatMap((rule) =>
    list(rule, "apiGroups").flatMap((group) =>
      list(rule, "resources").flatMap((resource) =>
        list(rule, "verbs").map((verb) => `${verb} ${group}/${resource}`),
      ),
    ),
  );
}

/**
 * What the plugin asks of an API that allows no more than this, until it knows the cluster and follows it: of one that streams its
 * lists, and of one that does not.
 */
async function rightsNeeded(option: string, allowed: readonly string[], watches: number): Promise<string[]> {
  const needed = new Set<string>();
  for (const streamsLists of [true, false]) {
    await using api = await ApiSimulator.start({ streamsLists });
    api.permits = (request) => request.verb === "get" || allowed.includes(rightFor(request));
    const plugin = PluginTest.of(kubernetes, `kubernetes cluster.local {\nendpoint ${api.url}\n${option}\n}`);
    const starting = plugin.start();
    const patience = AbortSignal.timeout(10_000);
    try {
      while (api.openWatches < watches && !patience.aborted) {
        plugin.clock.advance(10);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      await starting;
      assert.equal(api.openWatches, watches, plugin.log.lines.join("\n"));
      assert.ok(plugin.instances.every((instance) => instance.ready?.()));
      for (const request of api.requests) if (request.resource !== "") needed.add(rightFor(request));
    } finally {
      await plugin.stop();
    }
  }
  return [...needed].sort();
}

function rightFor({ verb, resource, path }: RequestFacts): string {
  return `${verb} ${/^\/apis\/([^/]+)/.exec(path)?.[1] ?? ""}/${resource}`;
}
