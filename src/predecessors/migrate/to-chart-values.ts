/**
 * Turns the values of CoreDNS's Helm chart into those of Portolan's. Each value of that chart has a rule: the same name, another name, not needed, or refused
 * because nothing here does what it did. The README of the chart has the same table.
 */
import { isObject, type JsonObject } from "../../kubernetes/objects/json.ts";

export interface ValueNotice {
  /** `service.clusterIPs`. */
  readonly path: string;
  /** `refused`: the release would not do what it did with CoreDNS. */
  readonly severity: "renamed" | "dropped" | "refused";
  readonly reason: string;
}

export interface ChartValues {
  readonly values: JsonObject;
  readonly notices: readonly ValueNotice[];
}

/** What a value becomes: values of Portolan's chart by their paths. */
type Conversion = (value: unknown) => Readonly<Record<string, unknown>>;

interface Rule {
  readonly kind: "same" | "renamed" | "dropped" | "refused";
  readonly reason: string;
  readonly convert: Conversion;
  /** Whether the value asks for nothing that gets lost. */
  readonly isFine: (value: unknown) => boolean;
}

/** @param values those of CoreDNS's chart, all or some */
export function toChartValues(values: unknown): ChartValues {
  const notices: ValueNotice[] = [];
  const result: Record<string, unknown> = {};
  const take = (path: string, value: unknown): void => {
    const rule = RULES.get(path);
    if (rule === undefined) {
      if (isObject(value) && [...RULES.keys()].some((known) => known.startsWith(`${path}.`))) {
        for (const [key, inner] of Object.entries(value)) take(`${path}.${key}`, inner);
      } else if (!isEmpty(value)) {
        notices.push({ path, severity: "refused", reason: "neither chart documents this value" });
      }
      return;
    }
    if (rule.isFine(value)) return;
    for (const [to, converted] of Object.entries(rule.convert(value))) put(result, to, converted);
    if (rule.kind !== "same") notices.push({ path, severity: rule.kind, reason: rule.reason });
  };
  for (const [key, value] of Object.entries(isObject(values) ? values : {})) {
    if (key !== "servers") {
      // What is switched off says nothing, and a file often repeats the defaults of the chart.
      const isOff = key === "autoscaler" && isObject(value) && isEmpty(value.enabled);
      take(key, isOff ? { enabled: false } : value);
    } else {
      const servers = readServers(value, notices);
      put(result, "servers", servers.list);
      if (servers.ports.length > 0) put(result, "extraPorts", servers.ports);
    }
  }
  withAccount(result, notices);
  return { values: result, notices };
}

/** Without a name, CoreDNS's pods then run with the account `default`; here they would have none. */
function withAccount(values: Record<string, unknown>, notices: ValueNotice[]): void {
  const { serviceAccount } = values;
  if (!isObject(serviceAccount) || serviceAccount.create !== false || serviceAccount.name !== undefined)
    return;
  put(values, "serviceAccount.name", "default");
  notices.push({
    path: "serviceAccount.name",
    severity: "renamed",
    reason: "now the account default by its name",
  });
}

/** The paths that have a rule, and `servers`. */
export function knownPaths(): string[] {
  return ["servers", ...RULES.keys()];
}

function put(values: Record<string, unknown>, path: string, value: unknown): void {
  const [first = "", ...rest] = path.split(".");
  if (rest.length === 0) {
    values[first] = value;
    return;
  }
  const inner = values[first];
  const object: Record<string, unknown> = isObject(inner) ? { ...inner } : {};
  put(object, rest.join("."), value);
  values[first] = object;
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === "" || value === false) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.values(value).every((inner) => isEmpty(inner));
}

/** Whether the default of the chart applies. */
function isUnset(value: unknown): boolean {
  return isEmpty(value) && value !== false;
}

/** Keys of a server that are those of the Service in CoreDNS's chart. */
const SERVICE_KEYS = ["servicePort", "nodePort", "hostPort"];

function readServers(
  value: unknown,
  notices: ValueNotice[],
): { readonly list: readonly unknown[]; readonly ports: readonly JsonObject[] } {
  const list: unknown[] = [];
  const ports = new Map<string, JsonObject>();
  for (const [index, server] of (Array.isArray(value) ? value : []).entries()) {
    if (!isObject(server)) continue;
    const { port } = server;
    for (const key of SERVICE_KEYS) {
      const given = server[key];
      if (given === undefined || (key === "servicePort" && given === (port ?? 53))) continue;
      const reason = `the Service has the port of the server block${key === "servicePort" ? "" : "; for others, write a Service of your own"}`;
      notices.push({ path: `servers[${index}].${key}`, severity: "refused", reason });
    }
    list.push({
      zones: zonesOf(server),
      ...Object.fromEntries(
        Object.entries(server).filter(([key]) => key !== "zones" && !SERVICE_KEYS.includes(key)),
      ),
    });
    if (typeof port !== "number" || port === 53) continue;
    for (const protocol of protocolsOf(server)) {
      const name = `${protocol.toLowerCase()}-${port}`;
      if (ports.has(name)) continue;
      ports.set(name, { name, port, protocol });
      const reason = `the port is in extraPorts as ${name}, because the Service has only 53 and 9153 by itself`;
      notices.push({ path: `servers[${index}].port`, severity: "renamed", reason });
    }
  }
  return { list, ports: [...ports.values()] };
}

/** CoreDNS's chart takes the root where a zone is left out. */
function zonesOf({ zones }: JsonObject): readonly unknown[] {
  const given = listOf(zones);
  return given.length === 0
    ? [{ zone: "." }]
    : given.map((zone) => (isObject(zone) ? { zone: ".", ...zone } : zone));
}

function protocolsOf({ zones }: JsonObject): Iterable<"UDP" | "TCP"> {
  const protocols = new Set<"UDP" | "TCP">();
  for (const zone of zonesOf({ zones })) {
    const scheme = isObject(zone) && typeof zone.scheme === "string" ? zone.scheme : "";
    if (scheme === "" || scheme === "dns://") protocols.add("UDP").add("TCP");
    else protocols.add(/^(quic|https3):/.test(scheme) ? "UDP" : "TCP");
  }
  return protocols;
}

const RULES: ReadonlyMap<string, Rule> = new Map([
  ...same(
    ...["replicaCount", "resources", "podAnnotations", "podLabels", "priorityClassName", "affinity"],
    ...["nodeSelector", "tolerations", "env", "extraVolumes", "extraVolumeMounts", "fullnameOverride"],
    ...["podSecurityContext", "securityContext", "image.pullPolicy", "rbac.create"],
    ...["serviceAccount.create", "serviceAccount.name", "serviceAccount.annotations"],
    ...["service.clusterIP", "service.annotations", "service.name", "service.ipFamilyPolicy"],
    ...["service.trafficDistribution"],
    ...["hpa.enabled", "hpa.minReplicas", "hpa.maxReplicas", "hpa.metrics"],
    ...["autoscaler.enabled", "autoscaler.resources"],
    ...["initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold"].flatMap((key) => [
      `livenessProbe.${key}`,
      `readinessProbe.${key}`,
    ]),
  ),
  renamed("nameOverride", "fullnameOverride"),
  renamed("image.pullSecrets", "imagePullSecrets", (names) =>
    listOf(names).map((name) => (isObject(name) ? name : { name })),
  ),
  renamed("rollingUpdate.maxUnavailable", "updateStrategy.maxUnavailable"),
  renamed("rollingUpdate.maxSurge", "updateStrategy.maxSurge"),
  [
    "podDisruptionBudget",
    {
      kind: "renamed",
      reason:
        "now podDisruptionBudget.enabled and podDisruptionBudget.maxUnavailable; minAvailable is not carried over",
      convert: (budget) => ({
        "podDisruptionBudget.enabled": true,
        ...(isObject(budget) &&
          budget.maxUnavailable !== undefined && {
            "podDisruptionBudget.maxUnavailable": budget.maxUnavailable,
          }),
      }),
      isFine: isEmpty,
    },
  ],
  [
    "topologySpreadConstraints",
    {
      kind: "renamed",
      reason: "now spreadPods: over nodes and zones, if possible",
      convert: () => ({ spreadPods: true }),
      isFine: isEmpty,
    },
  ],
  [
    "service.clusterIPs",
    {
      kind: "renamed",
      reason: "now service.clusterIP and service.ipFamilies; the cluster chooses the second address",
      convert: (addresses) => ({
        "service.clusterIP": String(listOf(addresses)[0]),
        "service.ipFamilies": listOf(addresses).map((address) =>
          String(address).includes(":") ? "IPv6" : "IPv4",
        ),
        ...(listOf(addresses).length > 1 && { "service.ipFamilyPolicy": "RequireDualStack" }),
      }),
      isFine: isEmpty,
    },
  ],
  [
    "autoscaler.image",
    {
      kind: "renamed",
      reason: "now one word, repository and tag",
      convert: (image) => ({ "autoscaler.image": imageName(image) }),
      isFine: (image) => isEmpty(image) || imageName(image) === "",
    },
  ],
  ...[
    "coresPerReplica",
    "nodesPerReplica",
    "min",
    "max",
    "includeUnschedulableNodes",
    "preventSinglePointFailure",
  ].map((key) => renamed(`autoscaler.${key}`, `autoscaler.linear.${key}`)),
  renamed("prometheus.monitor.enabled", "serviceMonitor.enabled"),
  renamed("prometheus.monitor.interval", "serviceMonitor.interval"),
  renamed("prometheus.monitor.additionalLabels", "serviceMonitor.labels"),
  ...without(
    ["image.repository", "image.tag"],
    "it names CoreDNS's image: set image.repository to the one of Portolan",
  ),
  ...without(["livenessProbe.enabled", "readinessProbe.enabled"], "probes are always on"),
  ...without(["livenessProbe.successThreshold", "readinessProbe.successThreshold"], "it is 1"),
  ...without(["terminationGracePeriodSeconds", "preStopSleep"], "it follows from lameduck"),
  ...without(["dnsPolicy", "dnsConfig"], "the pods use the resolvers of their nodes"),
  [
    "prometheus.service",
    {
      kind: "dropped",
      reason: "the Service has the port 9153 and service.annotations, for Prometheus by default",
      convert: () => ({}),
      isFine: (service) => !isObject(service) || isEmpty(service.enabled),
    },
  ],
  ...without(
    ["namespace", "selector", "scheme", "relabelings"].map((key) => `prometheus.monitor.${key}`),
    "the monitor is in the namespace of the release, over HTTP",
  ),
  ...without(
    [
      "affinity",
      "nodeSelector",
      "tolerations",
      "priorityClassName",
      "customFlags",
      "livenessProbe",
      "configmap",
    ].map((key) => `autoscaler.${key}`),
    "the autoscaler is scheduled as the servers are",
  ),
  ...without(["rbac.pspEnable"], "Kubernetes removed PodSecurityPolicy"),
  ...without(["clusterRole.nameOverride"], "cluster roles have the name of the release"),
  ...without(
    ["deployment.name", "deployment.annotations", "deployment.selector"],
    "they follow from the release",
  ),
  ...refused(
    "serviceType",
    "the Service is the cluster's own DNS, of type ClusterIP: write another one for outside",
    (type) => type === "ClusterIP",
  ),
  ...refused(
    "isClusterService",
    "the chart is for the DNS of the cluster",
    (is) => is === true || is === undefined || is === null,
  ),
  ...["loadBalancerIP", "loadBalancerClass", "externalIPs", "externalTrafficPolicy", "selector"].flatMap(
    (key) =>
      refused(`service.${key}`, "write a Service of your own for the label app.kubernetes.io/name: portolan"),
  ),
  ...refused(
    "k8sAppLabelOverride",
    "the pods have k8s-app: kube-dns",
    (label) => isEmpty(label) || label === "kube-dns",
  ),
  ...refused("deployment.enabled", "the chart is the Deployment and its ConfigMap", (on) => on === true),
  ...refused("deployment.skipConfig", "the Corefile comes from servers"),
  ...["extraConfig", "zoneFiles", "extraSecrets"].flatMap((key) =>
    refused(
      key,
      "put the files into a ConfigMap or Secret of your own, with extraVolumes and extraVolumeMounts",
    ),
  ),
  ...["initContainers", "extraContainers", "customLabels", "customAnnotations"].flatMap((key) =>
    refused(key, "use helm --post-renderer"),
  ),
]);

function same(...paths: readonly string[]): [string, Rule][] {
  return paths.map((path) => [
    path,
    { kind: "same", reason: "", convert: (value) => ({ [path]: value }), isFine: isUnset },
  ]);
}

function renamed(path: string, to: string, convert = (value: unknown): unknown => value): [string, Rule] {
  const rule: Rule = {
    kind: "renamed",
    reason: `now ${to}`,
    convert: (value) => ({ [to]: convert(value) }),
    isFine: isUnset,
  };
  return [path, rule];
}

function without(paths: readonly string[], reason: string): [string, Rule][] {
  return paths.map((path) => [path, { kind: "dropped", reason, convert: () => ({}), isFine: isEmpty }]);
}

function refused(path: string, reason: string, isFine = isEmpty): [string, Rule][] {
  return [[path, { kind: "refused", reason, convert: () => ({}), isFine }]];
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function imageName(image: unknown): string {
  if (typeof image === "string") return image;
  if (!isObject(image) || typeof image.repository !== "string" || image.repository === "") return "";
  return isEmpty(image.tag) ? image.repository : `${image.repository}:${String(image.tag)}`;
}
