/** `prometheus`: counts queries, and serves all metrics over HTTP (CoreDNS facts 2.22). */
import {
  definePlugin,
  directive,
  flag,
  listenAddress,
  option,
  optional,
  restTokens,
} from "../../plugin/index.ts";
import { Prometheus } from "./prometheus.ts";

export default definePlugin({
  name: "prometheus",
  summary: "Counts and measures queries, and serves all metrics over HTTP.",
  config: directive({
    args: { address: optional(listenAddress(), "localhost:9153") },
    options: {
      runtime_metrics: flag(),
      tls: option({ web_config_file: restTokens() }),
    },
    check({ tls }, report, at) {
      if (tls === undefined) return;
      report.error(
        "PLUGIN_UNAVAILABLE",
        at("tls"),
        "'tls' of prometheus is not in this version of Portolan",
        {
          expected: "no tls line; metrics are served over HTTP without encryption",
          notes: ["listen on localhost, or behind a proxy that asks for certificates or passwords"],
        },
      );
    },
  }),
  create: ({ address }, site) => new Prometheus(address, site),
});
