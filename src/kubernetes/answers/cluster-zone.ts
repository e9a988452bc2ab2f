/** A zone in which the cluster's names stand, with the names that its answers repeat. */
import { Name, NameError } from "../../dns/name.ts";
import { type NamedService, ServiceEntry } from "../store/service-entry.ts";

const REVERSE_ZONES = [Name.parse("in-addr.arpa."), Name.parse("ip6.arpa.")];

/** Whether a zone holds names of addresses (RFC 1035 section 3.5, RFC 3596 section 2.5). */
export function isReverseZone(zone: Name): boolean {
  return REVERSE_ZONES.some((root) => zone.isAtOrBelow(root));
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
    const known = entry instanceof ServiceEntry ? entry.nameBelow(this.#services) : undefined;
    return known ?? joinLabels([entry.name, entry.namespaceName], this.#services);
  }

  /**
   * `<label>.<service>.<namespace>.svc.<zone>`; undefined where that is longer than a name can be. The label of an endpoint in
   * another cluster is two: `db-0.east`.
   */
  endpointName(label: string, entry: NamedService): Name | undefined {
    const known = entry instanceof ServiceEntry ? entry.nameBelow(this.#services, label) : undefined;
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
