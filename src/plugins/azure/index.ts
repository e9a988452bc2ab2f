/** `azure`: zones of Azure DNS. */
import { definePlugin } from "../../plugin/index.ts";
import { azureConfig } from "./config.ts";
import { createAzure } from "./handler.ts";

export default definePlugin({
  name: "azure",
  summary: "Serves zones of Azure DNS.",
  config: azureConfig,
  create: createAzure,
});
