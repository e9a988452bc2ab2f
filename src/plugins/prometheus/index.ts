/** `prometheus`: counts queries, and serves all metrics over HTTP. */
import {
  definePlugin,
  directive,
  flag,
  listenAddress,
  optional,
  optionList,
  required,
  text,
} from "../../plugin/index.ts";
import { Prometheus } from "./prometheus.ts";

export default definePlugin({
  name: "prometheus",
  summary: "Counts and measures queries, and serves all metrics over HTTP.",
  config: directive({
    args: { address: optional(listenAddress(), "localhost:9153") },
    options: {
      runtime_metrics: flag(),
      tls: optionList({ web_config_file: required(text()) }),
    },
    check({ tls }, report, at) {
      if (tls.length <= 1) return;
      report.error("PLUGIN_REPEATED", at("tls"), "'tls' can only be used once in a 'prometheus'");
    },
  }),
  httpAddress: ({ address }) => address,
  create: ({ address, tls: [tls] }, site) => new Prometheus(address, tls?.web_config_file, site),
});
