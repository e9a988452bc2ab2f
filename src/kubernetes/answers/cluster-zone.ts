/** A zone in which the cluster's names stand, with the names that its answers repeat. */
import { MAX_LABEL_OCTETS, MAX_NAME_OCTETS, Name, NameError } from "../../dns/name.ts";
import { octetAt } from "../../dns/octets.ts";
import { IndexedService, type NamedService } from "../store/services/indexed-service.ts";

const REVERSE_ZONES = [Name.parse("in-addr.arpa."), Name.parse("ip6.arpa.")];

/** Whether a zone holds names of addresses (RFC 1035 section 3.5, RFC 3596 section 2.5). */
export function isReverseZone(zone: Name): boolean {
  return REVERSE_ZONES.some((root) => zone.isAtOrBelow(root));
}

/**
 * The zone in the targets of reverse names: the first one that does not hold names of addresses. If there is none, it is the root of such zones, as in
 * CoreDNS, which does not count that as one of them.
 */
export function primaryZone(zones: readonly Name[]): Name | undefined {
  return zones.find((zone) => !isReverseZone(zone)) ?? zones.find(isReverseRoot);
}

function isReverseRoot(zone: Name): boolean {
  return REVERSE_ZONES.some((root) => root.equals(zone));
}

export class ClusterZone {
  /** In lower case, as all names inside of RDATA. */
  readonly name: Name;
  readonly isReverse: boolean;
  /** `ns.dns.<zone>`: the server, where no service stands for it. */
  readonly nameServer: Name;
  /** `hostmaster.<zone>`. */
  readonly mailbox: Name;
  readonly #services: Name;

  constructor(name: Name) {
    this.name = name.toLowerCase();
    this.isReverse = isReverseZone(name);
    this.nameServer = Name.fromLabels(["ns", "dns"], this.name);
    this.mailbox = Name.fromLabels(["hostmaster"], this.name);
    this.#services = Name.fromLabels(["svc"], this.name);
  }

  /** `<service>.<namespace>.svc.<zone>`; undefined where that is longer than a name can be. */
  serviceName(entry: NamedService): Name | undefined {
    const known = entry instanceof IndexedService ? entry.nameBelow(this.#services) : undefined;
    return known ?? joinLabels([entry.name, entry.namespaceName], this.#services);
  }

  /**
   * `<label>.<service>.<namespace>.svc.<zone>`; undefined where that is longer than a name can be. The label of an endpoint in
   * another cluster is two: `db-0.east`.
   */
  endpointName(label: string, entry: NamedService): Name | undefined {
    const known = entry instanceof IndexedService ? entry.nameBelow(this.#services, label) : undefined;
    return known ?? joinLabels([...label.split("."), entry.name, entry.namespaceName], this.#services);
  }
}

/** Labels in front of a zone; undefined where that is longer than a name can be. */
export function joinLabels(labels: readonly string[], suffix: Name): Name | undefined {
  try {
    return Name.fromLabels(labels, suffix);
  } catch (error) {
    if (error instanceof NameError) return undefined;
    throw error;
  }
}

/** The same for labels with dots between them. Each change in the cluster asks for one or two: nothing is made on the way. */
export function joinDotted(labels: string, suffix: Name): Name | undefined {
  const { length } = labels;
  const { wire: tail } = suffix;
  if (length + 1 + tail.length > MAX_NAME_OCTETS) return undefined;
  const wire = new Uint8Array(length + 1 + tail.length);
  /** Where the label stands that is being read, with its length in front. */
  let start = 0;
  for (let at = 0; at <= length; at++) {
    const code = at < length ? labels.charCodeAt(at) : DOT;
    if (code !== DOT) {
      if (code > MAX_OCTET) return undefined;
      wire[at + 1] = code;
      continue;
    }
    if (at === start || at - start > MAX_LABEL_OCTETS) return undefined;
    wire[start] = at - start;
    start = at + 1;
  }
  for (let at = 0; at < tail.length; at++) wire[start + at] = octetAt(tail, at);
  return Name.fromCheckedWire(wire);
}

const DOT = 0x2e;
const MAX_OCTET = 0xff;
