/** `quic`: bounds of DNS over QUIC listeners. */
import { definePlugin, directive, integer, single } from "../../plugin/index.ts";

const count = integer({ min: 1 });

export default definePlugin({
  name: "quic",
  summary: "Limits streams and queries of DNS over QUIC listeners.",
  config: directive({ options: { max_streams: single(count), worker_pool_size: single(count) } }),
  configure({ max_streams, worker_pool_size }, settings) {
    settings.maxQuicStreams = max_streams ?? settings.maxQuicStreams;
    settings.maxQuicQueries = worker_pool_size ?? settings.maxQuicQueries;
  },
});
