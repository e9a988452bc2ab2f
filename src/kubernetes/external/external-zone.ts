/** A zone in which services stand under their external addresses, with the names that its answers repeat (src/plugins/k8s_external/README.md). */
import { Name } from "../../dns/name.ts";
import { isReverseZone, joinLabels } from "../answers/cluster-zone.ts";
import type { ServiceNaming } from "../answers/service-records.ts";
import type { NamedService } from "../store/services/indexed-service.ts";

export class ExternalZone implements ServiceNaming {
  /** In lower case, as all names inside of RDATA. */
  readonly name: Name;
  readonly isReverse: boolean;
  /** `<apex>.<zone>`: below it stand names of the server, and no service. */
  readonly apex: Name;
  /** `ns1.<apex>.<zone>`. */
  readonly nameServer: Name;
  /** `hostmaster.<apex>.<zone>`. */
  readonly mailbox: Name;

  /** @param apex relative to the zone; all labels together fit into a name */
  constructor(name: Name, apex: Name) {
    this.name = name.toLowerCase();
    this.isReverse = isReverseZone(name);
    this.apex = Name.fromLabels(apex.labelsAbove(Name.root), this.name);
    this.nameServer = this.apex.prepend("ns1");
    this.mailbox = this.apex.prepend("hostmaster");
  }

  /** `<service>.<namespace>.<zone>`. */
  serviceName(entry: NamedService): Name | undefined {
    return joinLabels([entry.name, entry.namespaceName], this.name);
  }

  /** `<label>.<service>.<namespace>.<zone>`. */
  endpointName(label: string, entry: NamedService): Name | undefined {
    return joinLabels([label, entry.name, entry.namespaceName], this.name);
  }
}
