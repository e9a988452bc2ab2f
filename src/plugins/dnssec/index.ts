/** `dnssec`: signs answers as they pass (CoreDNS facts 2.37, RFC 4034, RFC 4470, RFC 9824). */
import { definePlugin } from "../../plugin/index.ts";
import { dnssecConfig } from "./config.ts";
import { OnlineSigning } from "./handler.ts";

export default definePlugin({
  name: "dnssec",
  summary: "Signs answers as they are given, with NSEC records made for each denial.",
  config: dnssecConfig,
  create: (config, site) => new OnlineSigning(config, site),
});
