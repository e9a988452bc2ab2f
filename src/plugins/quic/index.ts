/** `quic`: limits for DNS over QUIC listeners. */
import { definePlugin, directive, integer, single } from "../../plugin/index.ts";

const count = integer({ min: 1 });
const connections = integer({
  min: 0,
  problem: (word) =>
    /^-\d+$/.test(word)
      ? `max_connections must be a non-negative integer: ${word}`
      : `invalid max_connections value '${word}'`,
});

export default definePlugin({
  name: "quic",
  summary: "Limits connections, streams and queries of DNS over QUIC listeners.",
  config: directive({
    options: {
      max_streams: single(count),
      max_connections: single(connections),
      worker_pool_size: single(count),
    },
    occurrences: "first",
  }),
  configure({ max_streams, max_connections, worker_pool_size }, settings) {
    settings.maxQuicConnections = max_connections ?? settings.maxQuicConnections;
    settings.maxQuicStreams = max_streams ?? settings.maxQuicStreams;
    settings.maxQuicQueries = worker_pool_size ?? settings.maxQuicQueries;
  },
});
