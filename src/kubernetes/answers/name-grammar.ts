/** What the labels of a name below a cluster zone mean (docs/spec/kubernetes-dns.md). */
import type { Name } from "../../dns/name.ts";
import type { ServiceLabels } from "../store/services/indexed-service.ts";

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

/** What only some kinds of names have. */
interface NameDetails {
  readonly endpoint?: string;
  readonly cluster?: string;
  readonly port?: string;
  readonly protocol?: string;
  readonly topologyZone?: string;
  readonly prefer?: boolean;
}

/** Texts are in lower case, and empty where the kind has none. Those of namespace and service are made when asked for: most answers need none. */
export class ClusterName implements ServiceLabels {
  readonly kind: ClusterNameKind;
  readonly octets: Uint8Array;
  readonly namespaceAt: number;
  readonly serviceAt: number;
  readonly #name: Name;
  readonly #inFront: number;
  readonly #details: NameDetails;

  /** @param inFront labels in front of that of the service, or of the namespace where the kind has no service; -1 where it has neither */
  constructor(kind: ClusterNameKind, name: Name, inFront = -1, details: NameDetails = NO_DETAILS) {
    this.kind = kind;
    this.#name = name;
    this.#inFront = inFront;
    this.#details = details;
    this.octets = name.folded;
    const first = inFront < 0 ? -1 : name.labelStart(inFront);
    const hasService = first >= 0 && !WITHOUT_SERVICE.has(kind);
    this.serviceAt = hasService ? first : -1;
    this.namespaceAt = hasService ? name.labelStart(inFront + 1) : first;
  }

  get namespace(): string {
    if (this.namespaceAt < 0) return "";
    return this.#name.labelText(this.serviceAt < 0 ? this.#inFront : this.#inFront + 1);
  }

  get service(): string {
    return this.serviceAt < 0 ? "" : this.#name.labelText(this.#inFront);
  }

  /** The label of an endpoint, or the address of a pod. In a multicluster zone with that of its cluster behind it: `db-0.east`. */
  get endpoint(): string {
    return this.#details.endpoint ?? "";
  }

  /** In a multicluster zone the cluster that an endpoint is in. */
  get cluster(): string {
    return this.#details.cluster ?? "";
  }

  /** Without the underscore. */
  get port(): string {
    return this.#details.port ?? "";
  }

  /** Without the underscore. */
  get protocol(): string {
    return this.#details.protocol ?? "";
  }

  /** The topology zone, which may hold dots. */
  get topologyZone(): string {
    return this.#details.topologyZone ?? "";
  }

  /** Of a zonal name: whether other endpoints stand in where the zone has none. */
  get prefer(): boolean {
    return this.#details.prefer ?? false;
  }
}

const NO_DETAILS: NameDetails = {};
const WITHOUT_SERVICE: ReadonlySet<ClusterNameKind> = new Set(["namespace", "podNamespace", "pod"]);

/** What names may mean beyond the specification. */
export interface NameForms {
  /** Names of topology zones (the option `zonal`). */
  readonly zonal: boolean;
  /** Names of endpoints have their cluster's behind them (`multicluster`). */
  readonly multicluster: boolean;
}

/**
 * Reads the labels of `name` to the left of `zone`, which must be an ancestor of it or the name itself. Labels have a
 * meaning by their place alone: a service or a namespace may well be called `svc` (docs/spec/kubernetes-dns.md#labels-by-position).
 */
export function parseClusterName(name: Name, zone: Name, forms: NameForms): ClusterName {
  const count = name.labelCount - zone.labelCount;
  if (count === 0) return new ClusterName("apex", name);
  if (name.isLabel(count - 1, "svc")) return parseServiceName(name, count, forms);
  if (name.isLabel(count - 1, "pod")) return parsePodName(name, count);
  if (count === 1 && name.isLabel(0, "dns-version")) return new ClusterName("dnsVersion", name);
  if (count === 2 && name.isLabel(1, "dns") && name.isLabel(0, "ns"))
    return new ClusterName("nameServer", name);
  return new ClusterName("invalid", name);
}

function parseServiceName(name: Name, count: number, { zonal, multicluster }: NameForms): ClusterName {
  if (count === 1) return new ClusterName("container", name);
  if (count === 2) return new ClusterName("namespace", name, 0);
  if (count === 3) return new ClusterName("service", name, 0);
  if (count === 4) {
    const endpoint = name.labelText(0);
    // With the label of a cluster behind it a label stands for two: one that holds a dot of its own must not pass for them.
    if (multicluster && endpoint.includes(".")) return new ClusterName("invalid", name);
    return new ClusterName("endpoint", name, 1, { endpoint });
  }
  if (zonal && count >= 6 && name.isLabel(count - 4, "_zone")) return parseZonalName(name, count);
  if (count > 5) return new ClusterName("invalid", name);
  const first = name.labelText(0);
  const second = name.labelText(1);
  if (multicluster && !first.startsWith("_") && !second.startsWith("_")) {
    // `<endpoint>.<cluster>.<service>.<namespace>.svc` (docs/spec/kubernetes-dns.md#multicluster).
    return new ClusterName("endpoint", name, 2, { endpoint: `${first}.${second}`, cluster: second });
  }
  const port = withoutUnderscore(first);
  return new ClusterName("port", name, 2, { port, protocol: withoutUnderscore(second) });
}

/** `<topology zone>.<pin or prefer>._zone.<service>.<namespace>.svc` (docs/spec/kubernetes-dns.md#zonal-names). */
function parseZonalName(name: Name, count: number): ClusterName {
  const prefer = name.isLabel(count - 5, "prefer");
  if (!prefer && !name.isLabel(count - 5, "pin")) return new ClusterName("invalid", name);
  const labels: string[] = [];
  for (let index = 0; index < count - 5; index++) labels.push(name.labelText(index));
  return new ClusterName("zonal", name, count - 3, { topologyZone: labels.join("."), prefer });
}

function parsePodName(name: Name, count: number): ClusterName {
  if (count === 1) return new ClusterName("container", name);
  if (count === 2) return new ClusterName("podNamespace", name, 0);
  if (count === 3) return new ClusterName("pod", name, 1, { endpoint: name.labelText(0) });
  return new ClusterName("invalid", name);
}

/** The underscores of port and protocol may be missing (docs/spec/kubernetes-dns.md#underscores-optional). */
function withoutUnderscore(label: string): string {
  return label.startsWith("_") ? label.slice(1) : label;
}
