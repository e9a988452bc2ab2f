/** `metadata`: labels on queries, for other plugins to use. */
import { definePlugin, directive, zones } from "../../plugin/index.ts";

export default definePlugin({
  name: "metadata",
  summary: "Collects metadata about queries for other plugins.",
  config: directive({ args: { zones: zones() } }),
  create: (config) => ({ metadataZones: config.zones }),
});
