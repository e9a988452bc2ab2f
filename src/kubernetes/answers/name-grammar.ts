/** What the labels of a name below a cluster zone mean (kubernetes-dns-spec part 12). */
import type { Name } from "../../dns/name.ts";

export type ClusterNameKind =
  | "apex"
  | "dnsVersion"
  | "nameServer"
  /** `svc` or `pod` itself. */
  | "container"
  /** `<ns>.svc` */
  | "namespace"
  /** `<ns>.pod` */
  | "podNamespace"
  | "service"
  | "endpoint"
  | "port"
  | "zonal"
  | "pod"
  /** A name that no object can have. */
  | "invalid";

/** Texts are in lower case, and empty where the kind has none. */
export interface ClusterName {
  readonly kind: ClusterNameKind;
  readonly namespace: string;
  readonly service: string;
  /** The label of an endpoint, or the address of a pod. In a multicluster zone with that of its cluster behind it: `db-0.east`. */
  readonly endpoint: string;
  /** In a multicluster zone the cluster that an endpoint is in. */
  readonly cluster: string;
  /** Without the underscore. */
  readonly port: string;
  /** Without the underscore. */
  readonly protocol: string;
  /** The topology zone, which may hold dots. */
  readonly topologyZone: string;
  /** Of a zonal name: whether other endpoints stand in where the zone has none. */
  readonly prefer: boolean;
}

const NOTHING: ClusterName = {
  kind: "invalid",
  namespace: "",
  service: "",
  endpoint: "",
  cluster: "",
  port: "",
  protocol: "",
  topologyZone: "",
  prefer: false,
};
const APEX: ClusterName = { ...NOTHING, kind: "apex" };
const DNS_VERSION: ClusterName = { ...NOTHING, kind: "dnsVersion" };
const NAME_SERVER: ClusterName = { ...NOTHING, kind: "nameServer" };
const CONTAINER: ClusterName = { ...NOTHING, kind: "container" };

/** What names may mean beyond the specification. */
export interface NameForms {
  /** Names of topology zones (the option `zonal`). */
  readonly zonal: boolean;
  /** Names of endpoints have their cluster's behind them (`multicluster`). */
  readonly multicluster: boolean;
}

/**
 * Reads the labels of `name` to the left of `zone`, which must be an ancestor of it or the name itself. Labels have a
 * meaning by their place alone: a service or a namespace may well be called `svc` (rule 10).
 */
export function parseClusterName(name: Name, zone: Name, forms: NameForms): ClusterName {
  const count = name.labelCount - zone.labelCount;
  if (count === 0) return APEX;
  const root = name.labelText(count - 1);
  if (root === "svc") return parseServiceName(name, count, forms);
  if (root === "pod") return parsePodName(name, count);
  if (count === 1 && root === "dns-version") return DNS_VERSION;
  if (count === 2 && root === "dns" && name.labelText(0) === "ns") return NAME_SERVER;
  return NOTHING;
}

function parseServiceName(name: Name, count: number, { zonal, multicluster }: NameForms): ClusterName {
  if (count === 1) return CONTAINER;
  const namespace = name.labelText(count - 2);
  if (count === 2) return { ...NOTHING, kind: "namespace", namespace };
  const service = name.labelText(count - 3);
  if (count === 3) return { ...NOTHING, kind: "service", namespace, service };
  // With the label of a cluster behind it a label stands for two: one that holds a dot of its own must not pass for them.
  if (count === 4 && multicluster && name.labelText(0).includes(".")) return NOTHING;
  if (count === 4) return { ...NOTHING, kind: "endpoint", namespace, service, endpoint: name.labelText(0) };
  if (zonal && count >= 6 && name.labelText(count - 4) === "_zone") {
    return parseZonalName(name, count, namespace, service);
  }
  if (count > 5) return NOTHING;
  if (multicluster && !name.labelText(0).startsWith("_") && !name.labelText(1).startsWith("_"))
    return parseClusterEndpoint(name, namespace, service);
  const port = withoutUnderscore(name.labelText(0));
  const protocol = withoutUnderscore(name.labelText(1));
  return { ...NOTHING, kind: "port", namespace, service, port, protocol };
}

/** `<endpoint>.<cluster>.<service>.<namespace>.svc` (rule 111). */
function parseClusterEndpoint(name: Name, namespace: string, service: string): ClusterName {
  const cluster = name.labelText(1);
  return {
    ...NOTHING,
    kind: "endpoint",
    namespace,
    service,
    endpoint: `${name.labelText(0)}.${cluster}`,
    cluster,
  };
}

/** `<topology zone>.<pin or prefer>._zone.<service>.<namespace>.svc` (rule 112). */
function parseZonalName(name: Name, count: number, namespace: string, service: string): ClusterName {
  const directive = name.labelText(count - 5);
  if (directive !== "pin" && directive !== "prefer") return NOTHING;
  const labels: string[] = [];
  for (let index = 0; index < count - 5; index++) labels.push(name.labelText(index));
  const prefer = directive === "prefer";
  return { ...NOTHING, kind: "zonal", namespace, service, topologyZone: labels.join("."), prefer };
}

function parsePodName(name: Name, count: number): ClusterName {
  if (count === 1) return CONTAINER;
  const namespace = name.labelText(count - 2);
  if (count === 2) return { ...NOTHING, kind: "podNamespace", namespace };
  if (count === 3) return { ...NOTHING, kind: "pod", namespace, endpoint: name.labelText(0) };
  return NOTHING;
}

/** The underscores of port and protocol may be missing (rule 35). */
function withoutUnderscore(label: string): string {
  return label.startsWith("_") ? label.slice(1) : label;
}
