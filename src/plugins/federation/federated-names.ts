/** Which names of the federations change with names of the cluster: the cluster tells of its own alone. */
import { Name } from "../../dns/index.ts";
import type { Site } from "../../plugin/index.ts";
import type { FederationConfig } from "./config.ts";

export class FederatedNames {
  readonly #config: FederationConfig;
  readonly #changing: Site["changingNames"];
  /** What this plugin tells comes back to it. */
  #isTelling = false;

  constructor(config: FederationConfig, changing: Site["changingNames"]) {
    this.#config = config;
    this.#changing = changing;
  }

  /** @param names of the cluster, which changed together with all names below them */
  tell(names: readonly Name[]): void {
    if (this.#isTelling) return;
    const federated = names.flatMap((name) => this.#federated(name));
    if (federated.length === 0) return;
    this.#isTelling = true;
    try {
      this.#changing.tell(federated);
    } finally {
      this.#isTelling = false;
    }
  }

  /** `web.shop.svc.<zone>` is `web.shop.<federation>.svc.<zone>` as well. Below `svc.<zone>` are those of the federations, too. */
  #federated(name: Name): Name[] {
    const zone = this.#config.zones.match(name);
    if (zone === undefined || name.labelCount < zone.labelCount + 2) return [];
    const labels = name.labelsAbove(zone);
    return Array.from(this.#config.federations.keys()).flatMap((federation) => {
      const federated = labels.toSpliced(-1, 0, federation);
      // What is longer than a name can be was never asked for.
      const octets = federated.reduce((sum, label) => sum + label.length + 1, zone.folded.length);
      return octets > MAX_NAME_OCTETS ? [] : [Name.fromLabels(federated, zone)];
    });
  }
}

const MAX_NAME_OCTETS = 255;
