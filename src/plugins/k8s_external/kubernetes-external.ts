import { CLUSTER, CLUSTER_WISH } from "../../kubernetes/answers/cluster-service.ts";
import type { FollowedZones } from "../../kubernetes/answers/followed-zones.ts";
import { ExternalAnswers } from "../../kubernetes/external/external-answers.ts";
import { externalTransfers } from "../../kubernetes/external/external-transfers.ts";
import {
  type Handler,
  type PluginInstance,
  SetupError,
  type Site,
  type TransferSource,
} from "../../plugin/index.ts";
import type { ExternalConfig } from "./config.ts";
import { ExternalHandler } from "./handler.ts";
import { TouchedExternalNames } from "./touched-names.ts";

/**
 * One directive. Its cluster is that of the `kubernetes` plugin behind it, which exists only once all plugins are
 * made.
 */
export class KubernetesExternal implements PluginInstance {
  readonly #config: ExternalConfig;
  readonly #site: Site;
  #handler: ExternalHandler | undefined;
  #transfers: FollowedZones | undefined;
  #end: (() => void) | undefined;

  constructor(config: ExternalConfig, site: Site) {
    this.#config = config;
    this.#site = site;
  }

  readonly services = [CLUSTER_WISH.offer({ externalAddresses: true })];

  readonly handle: Handler = (query, next) => this.#handler?.handle(query, next) ?? next(query);

  get transferSource(): TransferSource | undefined {
    return this.#transfers;
  }

  start(): void {
    const { block, changingNames, clock } = this.#site;
    const [cluster] = CLUSTER.among(block.plugins());
    if (cluster === undefined) {
      throw new SetupError("kubernetes plugin not loaded: k8s_external needs one in the same server block");
    }
    const { zones, apex, ttl, headless, fallthrough } = this.#config;
    const answers = new ExternalAnswers({ cluster: cluster.view, zones: zones.zones, apex, ttl, headless });
    const handler = new ExternalHandler(answers, fallthrough);
    changingNames.addZones(zones.zones);
    const touched = new TouchedExternalNames({
      view: answers.view,
      clock,
      forget: (names) => changingNames.tell(names),
    });
    const unsubscribe = cluster.view.store.subscribe((change) => {
      handler.forgetAnswers(change);
      touched.add(change);
    });
    this.#handler = handler;
    this.#transfers = externalTransfers(answers, clock);
    this.#end = () => {
      unsubscribe();
      touched.stop();
      this.#transfers?.stop();
    };
  }

  stop(): void {
    this.#end?.();
  }
}
