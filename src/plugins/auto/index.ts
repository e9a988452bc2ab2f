/** `auto`: zones from all master files in a folder. */
import { definePlugin } from "../../plugin/index.ts";
import { autoConfig } from "./config.ts";
import { AutoZones } from "./handler.ts";

export default definePlugin({
  name: "auto",
  summary: "Serves all zone files in a directory, and picks up new and removed files.",
  config: autoConfig,
  create: (config, site) => new AutoZones(config, site),
});
