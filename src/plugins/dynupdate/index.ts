/** `dynupdate`: a zone that signed updates can change (RFC 2136). */
import { definePlugin } from "../../plugin/index.ts";
import { dynUpdateConfig } from "./config.ts";
import { DynamicZones } from "./handler.ts";

export default definePlugin({
  name: "dynupdate",
  summary: "Serves a zone that dynamic updates can change (RFC 2136).",
  config: dynUpdateConfig,
  configure(_lines, settings) {
    settings.takesUpdates = true;
  },
  create: (lines, site) => new DynamicZones(lines, site),
});
