/** `explain`: shows programs on this machine how the running server handles a query. */
import { definePlugin, directive, optional } from "../../plugin/index.ts";
import { ExplainEndpoint } from "./endpoint.ts";
import { loopbackAddress } from "./loopback-address.ts";

export default definePlugin({
  name: "explain",
  summary: "Traces a query through the running server, for requests from the local machine.",
  leaderOnly: true,
  config: directive({ args: { address: optional(loopbackAddress(), "127.0.0.1:8183") } }),
  httpAddress: ({ address }) => address,
  create: ({ address }, site) => new ExplainEndpoint(address, site),
});
