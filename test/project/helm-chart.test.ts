/** The chart makes what the plain manifests say, of values that its schema knows. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { knownPaths, toChartValues } from "../../src/predecessors/migrate/to-chart-values.ts";
import {
  allChartObjects,
  at,
  CHART,
  chartNotes,
  chartObjects,
  corefileOf,
  defaultValues,
  nameOf,
  objectCalled,
  type Part,
  partAt,
  plainObjects,
  readCorefile,
} from "../support/deployment.ts";
import { schemaProblems } from "../support/json-schema.ts";
import { run } from "../support/program.ts";

test("the chart and the plain manifests are the same objects", () => {
  // The chart leaves the number of replicas to the autoscaler.
  const withoutReplicas = (objects: Part[]) =>
    byName(objects).map((object) =>
      nameOf(object) === "Deployment portolan"
        ? { ...object, spec: { ...partAt(object, "spec"), replicas: undefined } }
        : object,
    );
  const chart = JSON.parse(JSON.stringify(withoutReplicas(allChartObjects())), withoutHelmLabels);
  const plain = JSON.parse(JSON.stringify(withoutReplicas(plainObjects())));
  assert.deepEqual(chart.map(comparable), plain.map(comparable));
  const replicas = [chartObjects(), plainObjects()].map((objects) =>
    at(objectCalled(objects, "Deployment portolan"), "spec.replicas"),
  );
  assert.deepEqual(replicas, [2, 2]);
});

describe("values of the chart", () => {
  const schema = JSON.parse(readFileSync(join(CHART, "values.schema.json"), "utf8"));

  test("are right as they come", () => {
    assert.deepEqual(schemaProblems(schema, defaultValues()), []);
  });

  for (const [what, values, problem] of [
    ["an unknown name", { replicas: 3 }, "values.replicas is not known"],
    [
      "an unknown name further down",
      { image: { repo: "x", repository: "x" } },
      "values.image.repo is not known",
    ],
    ["text for a number", { replicaCount: "2" }, "values.replicaCount is no integer"],
    ["no replica", { replicaCount: 0 }, "values.replicaCount is below 1"],
    [
      "another pull policy",
      { image: { repository: "x", pullPolicy: "always" } },
      "values.image.pullPolicy is none of",
    ],
    ["a server block without zones", { servers: [{ plugins: [] }] }, "values.servers[0].zones is missing"],
    [
      "an invalid scheme",
      { servers: [{ zones: [{ zone: ".", scheme: "tcp://" }], plugins: [] }] },
      "is none of",
    ],
    ["another kind", { kind: "StatefulSet" }, "values.kind is none of"],
    ["a port without a name", { extraPorts: [{ port: 853 }] }, "values.extraPorts[0].name is missing"],
    [
      "a cluster address that is a name",
      { service: { create: true, name: "a", clusterIP: "dns" } },
      "does not match",
    ],
    ["an invalid port", { networkPolicy: { enabled: true, apiPorts: [65536] } }, "is above 65535"],
    ["a label that is no text", { podLabels: { tier: 1 } }, "values.podLabels.tier is no string"],
    ["an invalid share", { updateStrategy: { maxSurge: "a quarter" } }, "does not match"],
  ] as const) {
    test(`are refused with ${what}`, () => {
      const problems = schemaProblems(schema, { ...defaultValues(), ...values });
      assert.equal(problems.length, 1, problems.join("\n"));
      assert.ok(problems[0]?.includes(problem), problems[0]);
    });
  }

  test("of the CoreDNS chart, migrated, are right for this one, and make the same Corefile", () => {
    const servers = [
      { plugins: [{ name: "errors" }, { name: "cache", parameters: 30 }] },
      { zones: [{ zone: ".", scheme: "tls://" }], port: 853, plugins: [{ name: "whoami" }] },
    ];
    const { values, notices } = toChartValues({
      ...{ servers, replicaCount: 3, serviceType: "ClusterIP", isClusterService: true, zoneFiles: [] },
      image: { repository: "coredns/coredns", tag: "1.12.0", pullPolicy: "Always", pullSecrets: ["key"] },
      service: { clusterIP: "10.96.0.10", name: "", annotations: { a: "b" } },
      serviceAccount: { create: true, name: "" },
      rbac: { create: true, pspEnable: false },
      rollingUpdate: { maxUnavailable: 1, maxSurge: "25%" },
      livenessProbe: {
        enabled: true,
        initialDelaySeconds: 60,
        periodSeconds: 10,
        failureThreshold: 5,
        successThreshold: 1,
      },
      readinessProbe: { enabled: true, periodSeconds: 10, failureThreshold: 5 },
      podDisruptionBudget: { maxUnavailable: 1 },
      topologySpreadConstraints: [{ maxSkew: 1 }],
      hpa: { enabled: true, minReplicas: 2, maxReplicas: 4, metrics: [] },
      autoscaler: { enabled: false, coresPerReplica: 256, image: { repository: "r", tag: "t" } },
      prometheus: { monitor: { enabled: true, interval: "15s", additionalLabels: { release: "p" } } },
      ...{
        affinity: {},
        nodeSelector: {},
        tolerations: [{ operator: "Exists" }],
        env: [],
        priorityClassName: "",
      },
    });
    assert.deepEqual(
      notices.filter(({ severity }) => severity === "refused"),
      [],
    );
    assert.deepEqual(schemaProblems(schema, merged(defaultValues(), values)), []);
    const objects = chartObjects(values);
    assert.match(
      corefileOf(objects),
      /^\.:53 \{\n {4}errors\n {4}cache 30\n\}\n+tls:\/\/\.:853 \{\n {4}whoami\n\}/,
    );
    const ports = at(objectCalled(objects, "Service kube-dns"), "spec.ports");
    assert.ok(Array.isArray(ports) && ports.some(({ port, protocol }) => port === 853 && protocol === "TCP"));
  });

  test("of the CoreDNS chart are in the table of the README, each as migrate treats it", () => {
    const readme = readFileSync(join(CHART, "README.md"), "utf8");
    const [, table = ""] = /## Values of the CoreDNS chart\n(.*?)\n## /s.exec(readme) ?? [];
    const rows = [...table.matchAll(/^\| (`.*?) \| (.*?) \| .*\|$/gm)];
    assert.ok(rows.length > 20);
    const listed = new Map(
      rows.flatMap(([, names = "", here = ""]) =>
        Array.from(names.matchAll(/`([\w.]+)`/g), ([, name = ""]) => [name, here] as const),
      ),
    );
    const isListed = (path: string): boolean =>
      listed.has(path) || (path.includes(".") && isListed(path.replace(/\.[^.]+$/, "")));
    assert.deepEqual(
      knownPaths().filter((path) => !isListed(path)),
      [],
    );
    for (const [path, here] of listed) {
      const known = knownPaths().filter((each) => each === path || each.startsWith(`${path}.`));
      assert.ok(known.length > 0, `${path} has no rule`);
      const { notices } = toChartValues(nested(path, "something else"));
      const isRefused = notices.some(({ severity }) => severity === "refused");
      if (known.includes(path) && path !== "servers")
        assert.equal(isRefused, here.startsWith("refused"), path);
    }
  });

  test("make the Corefile as those of the CoreDNS chart do", async () => {
    const plugins = [
      { name: "errors" },
      { name: "cache", parameters: 30, configBlock: "success 1000\ndenial 500 10\n" },
      { name: "forward", parameters: ". 192.0.2.53" },
    ];
    const servers = [
      {
        zones: [
          { zone: "example.org", use_tcp: true },
          { zone: "example.net", scheme: "dns://" },
        ],
        plugins,
      },
      { zones: [{ zone: "." }], port: 5353, plugins: [{ name: "whoami" }] },
    ];
    assert.deepEqual(schemaProblems(schema, { ...defaultValues(), servers }), []);
    const corefile = corefileOf(chartObjects({ servers }));
    assert.equal(
      corefile,
      [
        "example.org:53 dns://example.net:53 {",
        "    errors",
        "    cache 30 {",
        "        success 1000",
        "        denial 500 10",
        "    }",
        "    forward . 192.0.2.53",
        "}",
        "",
        ".:5353 {",
        "    whoami",
        "}",
        "",
      ].join("\n"),
    );
    await readCorefile(corefile);
  });

  test("change labels of the pods without the Service's losing them", () => {
    for (const podLabels of [{}, { team: "dns" }, { "k8s-app": "other", team: "dns" }]) {
      const objects = chartObjects({ podLabels });
      const selector = at(objectCalled(objects, "Service kube-dns"), "spec.selector");
      assert.deepEqual(selector, { "k8s-app": "kube-dns" });
      const labels = partAt(objectCalled(objects, "Deployment portolan"), "spec.template.metadata.labels");
      assert.equal(labels["k8s-app"], "kube-dns");
      assert.equal(labels.team, "team" in podLabels ? "dns" : undefined);
    }
  });

  test("give variables, address families and a traffic policy", () => {
    const values = {
      env: [{ name: "UPSTREAM", value: "192.0.2.53" }],
      service: {
        ipFamilyPolicy: "PreferDualStack",
        ipFamilies: ["IPv6", "IPv4"],
        internalTrafficPolicy: "Local",
      },
    };
    const objects = chartObjects(values);
    const service = partAt(objectCalled(objects, "Service kube-dns"), "spec");
    assert.equal(service.ipFamilyPolicy, "PreferDualStack");
    assert.deepEqual(service.ipFamilies, ["IPv6", "IPv4"]);
    assert.equal(service.internalTrafficPolicy, "Local");
    const [container] = Object.values(
      partAt(objectCalled(objects, "Deployment portolan"), "spec.template.spec.containers"),
    );
    assert.deepEqual(at(container, "env"), values.env);
  });

  test("open further ports for clients that may query", () => {
    const port = { name: "dns-over-tls", port: 853, protocol: "TCP" };
    const objects = chartObjects({
      extraPorts: [{ name: port.name, port: port.port }],
      networkPolicy: { enabled: true },
    });
    assert.deepEqual(at(objectCalled(objects, "Service kube-dns"), "spec.ports.3"), port);
    const container = partAt(objectCalled(objects, "Deployment portolan"), "spec.template.spec.containers.0");
    assert.deepEqual(at(container, "ports.5"), { name: port.name, containerPort: 853, protocol: "TCP" });
    const policy = objectCalled(objects, "NetworkPolicy portolan");
    assert.deepEqual(at(policy, "spec.ingress.2.ports"), [{ port: 853, protocol: "TCP" }]);
  });

  test("put one pod on each node, in the node's network", () => {
    const values = { kind: "DaemonSet", hostNetwork: true, service: { internalTrafficPolicy: "Local" } };
    const objects = chartObjects(values);
    assert.deepEqual(
      objects.filter((object) => ["Deployment", "PodDisruptionBudget"].includes(String(object.kind))),
      [],
    );
    const spec = partAt(objectCalled(objects, "DaemonSet portolan"), "spec");
    assert.deepEqual(spec.updateStrategy, { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 } });
    for (const name of ["replicas", "strategy"]) assert.equal(spec[name], undefined);
    const pod = partAt(spec, "template.spec");
    assert.deepEqual([pod.hostNetwork, pod.dnsPolicy], [true, "Default"]);
    assert.equal(pod.topologySpreadConstraints, undefined);
    // Kubernetes refuses the sysctl there, and gives the capability to root.
    assert.deepEqual(pod.securityContext, { runAsUser: 0, seccompProfile: { type: "RuntimeDefault" } });
    assert.deepEqual(at(pod, "containers.0.securityContext.capabilities"), {
      drop: ["ALL"],
      add: ["NET_BIND_SERVICE"],
    });
  });

  test("may bring security contexts of their own", () => {
    const podSecurityContext = { runAsUser: 1000, fsGroup: 1000 };
    const securityContext = { readOnlyRootFilesystem: true };
    const pod = portolanPod("lameduck 10s", { podSecurityContext, securityContext });
    assert.deepEqual(pod.securityContext, podSecurityContext);
    assert.deepEqual(at(pod, "containers.0.securityContext"), securityContext);
  });

  test("leave the number of replicas to one autoscaler", () => {
    for (const values of [{ hpa: { enabled: true } }, { autoscaler: { enabled: true } }]) {
      const deployment = objectCalled(chartObjects(values), "Deployment portolan");
      assert.equal(at(deployment, "spec.replicas"), undefined);
    }
    for (const [values, problem] of [
      [{ hpa: { enabled: true }, autoscaler: { enabled: true } }, /switch one of them off/],
      [{ kind: "DaemonSet", hpa: { enabled: true } }, /one pod on each node/],
      [{ kind: "DaemonSet", autoscaler: { enabled: true } }, /one pod on each node/],
    ] as const)
      assert.throws(() => chartObjects(values), problem);
  });

  test("have their alerts where Prometheus would take them", { skip: skipWithout("promtool") }, async () => {
    const labels = { release: "prometheus" };
    const objects = chartObjects({ prometheusRule: { enabled: true, labels } });
    assert.equal(
      at(objectCalled(objects, "PrometheusRule portolan"), "metadata.labels.release"),
      "prometheus",
    );
    const { code, output, errors } = await run("promtool", ["check", "rules", join(CHART, "alerts.yaml")]);
    assert.equal(code, 0, output + errors);
  });

  for (const [what, values, query] of [
    [
      "the address that is given",
      { service: { clusterIP: "10.96.0.10" } },
      /^ {4}dig @10\.96\.0\.10 kubernetes\.default/m,
    ],
    [
      "the address that the cluster chose",
      {},
      /^ {4}dig @\$\(kubectl -n kube-system get service kube-dns -o jsonpath='\{\.spec\.clusterIP\}'\) kubernetes\.default/m,
    ],
  ] as const) {
    test(`end with a query to try, at ${what}`, () => {
      const notes = chartNotes(values);
      assert.match(notes, query);
      assert.match(notes, /rollout status deployment\/portolan$/m);
      assert.equal(notes.includes("Set service.clusterIP"), !("service" in values));
    });
  }

  for (const [configBlock, seconds] of [
    ["lameduck 30s", 50],
    ["", 20],
  ] as const) {
    test(`give a pod ${seconds} s to end with "${configBlock}"`, () => {
      assert.equal(gracePeriod(configBlock), seconds);
    });
  }

  for (const [lameduck, periodSeconds] of [
    [4, 1],
    [5, 1],
    [7, 1],
    [8, 2],
    [10, 2],
    [60, 2],
  ] as const) {
    test(`take a pod with ${lameduck} s of lameduck out of the Service before half of them is over`, () => {
      const probe = partAt(portolanPod(`lameduck ${lameduck}s`), "containers.0.readinessProbe");
      assert.equal(probe.periodSeconds, periodSeconds);
      assert.ok(Number(probe.periodSeconds) * Number(probe.failureThreshold) <= lameduck / 2);
    });
  }

  test("may say themselves how often pods are asked whether they are ready", () => {
    const pod = portolanPod("lameduck 30s", { readinessProbe: { periodSeconds: 5, failureThreshold: 3 } });
    assert.equal(at(pod, "containers.0.readinessProbe.periodSeconds"), 5);
  });

  test("mount further volumes, such as one for a snapshot", () => {
    const pod = portolanPod("lameduck 10s", {
      extraVolumes: [{ name: "snapshot", emptyDir: {} }],
      extraVolumeMounts: [{ name: "snapshot", mountPath: "/var/lib/portolan" }],
    });
    assert.deepEqual(at(pod, "volumes.1"), { name: "snapshot", emptyDir: {} });
    assert.deepEqual(at(pod, "containers.0.volumeMounts.1"), {
      name: "snapshot",
      mountPath: "/var/lib/portolan",
    });
    assert.equal(at(pod, "containers.0.volumeMounts.0.name"), "config");
  });

  test("are refused with a lameduck that no grace period can follow from", () => {
    assert.throws(() => gracePeriod("lameduck 1m"), /write lameduck in whole seconds/);
  });

  test("leave out what is switched off", () => {
    const objects = chartObjects({
      service: { create: false },
      serviceAccount: { create: false, name: "other" },
      rbac: { create: false },
      podDisruptionBudget: { enabled: false },
    });
    assert.deepEqual(objects.map(nameOf).sort(), ["ConfigMap portolan", "Deployment portolan"]);
    const pod = partAt(objectCalled(objects, "Deployment portolan"), "spec.template.spec");
    assert.equal(pod.serviceAccountName, "other");
  });

  test("are all in the chart's README", () => {
    const readme = readFileSync(join(CHART, "README.md"), "utf8");
    const missing = valueNames(defaultValues()).filter((name) => !readme.includes(`\`${name}\``));
    assert.deepEqual(missing, []);
  });
});

function gracePeriod(configBlock: string): unknown {
  return portolanPod(configBlock).terminationGracePeriodSeconds;
}

/** @param configBlock that of the plugin `health` */
function portolanPod(configBlock: string, values: Part = {}): Part {
  const servers = [{ zones: [{ zone: "." }], plugins: [{ name: "health", configBlock }] }];
  const deployment = objectCalled(chartObjects({ servers, ...values }), "Deployment portolan");
  return partAt(deployment, "spec.template.spec");
}

function byName(objects: readonly Part[]): Part[] {
  return objects.toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
}

const HELM_LABELS = ["instance", "version", "managed-by"].map((name) => `app.kubernetes.io/${name}`);

function withoutHelmLabels(name: string, value: unknown): unknown {
  return HELM_LABELS.includes(name) ? undefined : value;
}

/** The autoscaler's JSON may be laid out in any way. */
function comparable(object: Part): Part {
  if (nameOf(object) !== "ConfigMap portolan-autoscaler") return object;
  return { ...object, data: JSON.parse(String(at(object, "data.linear"))) };
}

/** Names such as `image.tag`; of free maps the name of the map. */
function valueNames(values: Part): string[] {
  const free = ["nodeSelector", "podLabels", "resources", "readinessProbe", "livenessProbe"];
  return Object.entries(values).flatMap(([name, value]) => {
    const inner =
      typeof value === "object" && value !== null && !Array.isArray(value) && !free.includes(name);
    return inner && Object.keys(value).length > 0
      ? Object.keys(value).map((each) => `${name}.${each}`)
      : [name];
  });
}

function nested(path: string, value: unknown): unknown {
  const autoscaler = path.startsWith("autoscaler.") ? { enabled: true } : {};
  return path
    .split(".")
    .reduceRight<unknown>(
      (inner, key, index) => ({ ...(index === 1 ? autoscaler : {}), [key]: inner }),
      value,
    );
}

/** As Helm lays values over the defaults. */
function merged(base: unknown, over: unknown): unknown {
  if (!isPlain(base) || !isPlain(over)) return over;
  const result: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(over)) result[key] = merged(base[key], value);
  return result;
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
