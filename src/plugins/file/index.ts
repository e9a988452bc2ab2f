/** `file`: zones from master files. */
import { definePlugin } from "../../plugin/index.ts";
import { fileConfig } from "./config.ts";
import { FileZones } from "./handler.ts";

export default definePlugin({
  name: "file",
  summary: "Serves zones from zone files (RFC 1035).",
  claims: ({ args }) => ({ zones: args.slice(1), hasFallthrough: true }),
  config: fileConfig,
  configure(lines, settings) {
    if (lines.some(({ update, allow }) => update !== undefined || allow.length > 0))
      settings.takesUpdates = true;
  },
  create: (lines, site) => new FileZones(lines, site),
});
