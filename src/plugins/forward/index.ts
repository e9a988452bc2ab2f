import { definePlugin } from "../../plugin/index.ts";
import { forwardDirective } from "./configuration.ts";
import { Forwarder } from "./handler.ts";

export default definePlugin({
  name: "forward",
  summary: "Sends queries to other DNS servers and passes their answers on.",
  config: forwardDirective,
  allClasses: true,
  create: (config, site) => new Forwarder(config, site),
});
