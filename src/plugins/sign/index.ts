/** `sign`: signs zone files for `file` and `auto`. */
import { definePlugin } from "../../plugin/index.ts";
import { signConfig } from "./config.ts";
import { ZoneFileSigning } from "./zone-file-signing.ts";

export default definePlugin({
  name: "sign",
  summary: "Signs zone files (DNSSEC), and signs them again before the signatures expire.",
  config: signConfig,
  leaderOnly: true,
  create: (lines, site) => new ZoneFileSigning(lines, site),
});
