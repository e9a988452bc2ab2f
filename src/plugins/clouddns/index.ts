/** `clouddns`: zones of Google Cloud DNS. */
import { definePlugin } from "../../plugin/index.ts";
import { cloudDnsConfig } from "./config.ts";
import { createCloudDns } from "./handler.ts";

export default definePlugin({
  name: "clouddns",
  summary: "Serves zones of Google Cloud DNS.",
  config: cloudDnsConfig,
  create: createCloudDns,
});
