/** `secondary`: zones transferred from their primaries. */
import { definePlugin } from "../../plugin/index.ts";
import { secondaryConfig } from "./config.ts";
import { SecondaryZones } from "./handler.ts";

export default definePlugin({
  name: "secondary",
  summary: "Serves zones transferred from primary servers.",
  config: secondaryConfig,
  create: (lines, site) => new SecondaryZones(lines, site),
});
