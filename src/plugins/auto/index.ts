/** `auto`: zones from all master files of a folder (CoreDNS facts 2.49). */
import { definePlugin } from "../../plugin/index.ts";
import { autoConfig } from "./config.ts";
import { AutoZones } from "./handler.ts";

export default definePlugin({
  name: "auto",
  summary: "Serves zones from all master files of a folder, as they come and go.",
  config: autoConfig,
  create: (config, site) => new AutoZones(config, site),
});
