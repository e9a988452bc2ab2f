/** `transfer`: serves zone transfers, and notifies secondaries of changes. */
import { definePlugin } from "../../plugin/index.ts";
import { transferConfig } from "./config.ts";
import { ZoneTransfers } from "./handler.ts";

export default definePlugin({
  name: "transfer",
  summary: "Serves zone transfers (AXFR, IXFR) to secondary servers, and notifies them of changes.",
  config: transferConfig,
  create: (lines, site) => new ZoneTransfers(lines, site),
});
