/** `nomad`: services of HashiCorp Nomad. */
import { definePlugin } from "../../plugin/index.ts";
import { nomadConfig } from "./config.ts";
import { createNomad } from "./handler.ts";

export default definePlugin({
  name: "nomad",
  summary: "Serves the services that are registered in Nomad.",
  config: nomadConfig,
  create: createNomad,
});
