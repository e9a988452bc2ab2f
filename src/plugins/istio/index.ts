/**
 * `istio`: names of Istio's ServiceEntries, with the answers of Istio's CoreDNS plugin (docs/spec/kube-dns.md#istio).
 */
import { definePlugin } from "../../plugin/index.ts";
import { config } from "./config.ts";
import { Istio } from "./istio.ts";

export default definePlugin({
  name: "istio",
  summary: "Answers for the hosts of Istio's ServiceEntries.",
  claims: ({ args }) => ({ zones: args, hasFallthrough: true }),
  config,
  create: (values, site) => new Istio(values, site),
});
