/** `dnssec`: signs answers as they pass (RFC 4034, RFC 4470, RFC 9824). */
import { definePlugin } from "../../plugin/index.ts";
import { dnssecConfig } from "./config.ts";
import { OnlineSigning } from "./handler.ts";

export default definePlugin({
  name: "dnssec",
  summary: "Signs responses on the fly (DNSSEC), including NSEC records for denials.",
  config: dnssecConfig,
  configure({ compact }, settings) {
    if (compact) settings.deniesCompactly = true;
  },
  create: (config, site) => new OnlineSigning(config, site),
});
