import { definePlugin } from "../../plugin/index.ts";
import { forwardDirective } from "./configuration.ts";
import { Forwarder } from "./handler.ts";

export default definePlugin({
  name: "forward",
  summary: "Forwards queries to upstream DNS servers.",
  config: forwardDirective,
  allClasses: true,
  create: (config, site) => new Forwarder(config, site),
});
