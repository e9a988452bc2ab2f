/** `pprof`: serves profiles of the process over HTTP. */
import { definePlugin, directive, integer, listenAddress, optional, optionList } from "../../plugin/index.ts";
import { Pprof } from "./pprof.ts";

/** Only this machine has access: profiles reveal what the process does. */
const DEFAULT_ADDRESS = "localhost:6053";

export default definePlugin({
  name: "pprof",
  summary: "Serves CPU and heap profiles for pprof.",
  config: directive({
    args: { address: optional(listenAddress(), DEFAULT_ADDRESS) },
    options: { block: optionList({ rate: optional(integer({ min: 0 })) }) },
    check({ block }, report, at) {
      if (block.length === 0) return;
      const message = "'block' has no effect: nothing blocks in this runtime";
      report.warning("PLUGIN_OPTION_IGNORED", at("block"), message);
    },
  }),
  leaderOnly: true,
  httpAddress: ({ address }) => address,
  create: ({ address }, site) => new Pprof(address, site),
});
