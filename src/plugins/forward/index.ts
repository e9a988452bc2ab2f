import { definePlugin } from "../../plugin/index.ts";
import { forwardClaims } from "./claims.ts";
import { forwardDirective } from "./configuration.ts";
import { Forwarder } from "./handler.ts";

export default definePlugin({
  name: "forward",
  summary: "Forwards queries to upstream DNS servers.",
  claims: forwardClaims,
  config: forwardDirective,
  allClasses: true,
  create: (config, site) => new Forwarder(config, site),
});
