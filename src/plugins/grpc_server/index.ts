/** `grpc_server`: limits for DNS over gRPC listeners. */
import { definePlugin, directive, integer, single } from "../../plugin/index.ts";

const count = integer({ min: 0 });

export default definePlugin({
  name: "grpc_server",
  summary: "Limits connections and streams of DNS over gRPC listeners.",
  config: directive({
    options: { max_streams: single(count), max_connections: single(count) },
    occurrences: "first",
  }),
  configure({ max_streams, max_connections }, settings) {
    settings.maxGrpcStreams = max_streams ?? settings.maxGrpcStreams;
    settings.maxGrpcConnections = max_connections ?? settings.maxGrpcConnections;
  },
});
