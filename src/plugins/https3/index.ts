/** `https3`: limits for DNS over HTTP/3 listeners. */
import { definePlugin, directive, integer, single } from "../../plugin/index.ts";

const count = integer({ min: 0 });

export default definePlugin({
  name: "https3",
  summary: "Limits connections and streams of DNS over HTTP/3 listeners.",
  config: directive({
    options: { max_streams: single(count), max_connections: single(count) },
    occurrences: "first",
  }),
  configure({ max_streams, max_connections }, settings) {
    settings.maxHttps3Streams = max_streams ?? settings.maxHttps3Streams;
    settings.maxHttps3Connections = max_connections ?? settings.maxHttps3Connections;
  },
});
