/**
 * `federation`: services of several clusters under one name, as in CoreDNS before 1.7.0
 * (docs/spec/kube-dns.md#federation).
 */
import { definePlugin } from "../../plugin/index.ts";
import { config } from "./config.ts";
import { FederatedNames } from "./federated-names.ts";
import { federate } from "./handler.ts";
import { OwnPlace } from "./own-place.ts";

export default definePlugin({
  name: "federation",
  summary: "Answers names of federated Kubernetes clusters.",
  config,
  create(values, site) {
    const place = new OwnPlace(site);
    const hasCluster = (): boolean => site.block.plugins().some(({ name }) => name === "kubernetes");
    const federated = new FederatedNames(values, site.changingNames);
    return {
      handle: federate(values, hasCluster, () => values.node ?? place.find()),
      forget: (names) => federated.tell(names),
      stop: () => place.stop(),
    };
  },
});
