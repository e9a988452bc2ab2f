/** `https`: bounds of DNS over HTTPS listeners. */
import { definePlugin, directive, integer, single } from "../../plugin/index.ts";

export default definePlugin({
  name: "https",
  summary: "Limits the connections of DNS over HTTPS listeners.",
  config: directive({ options: { max_connections: single(integer({ min: 0 })) } }),
  configure({ max_connections }, settings) {
    settings.maxHttpsConnections = max_connections ?? settings.maxHttpsConnections;
  },
});
