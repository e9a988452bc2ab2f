/** `grpc`: sends queries to servers for DNS over gRPC. */
import { definePlugin } from "../../plugin/index.ts";
import { config } from "./config.ts";
import { GrpcForwarder } from "./handler.ts";

export default definePlugin({
  name: "grpc",
  summary: "Forwards queries to upstream servers over gRPC.",
  config,
  create: (values, site) => new GrpcForwarder(values, site),
});
