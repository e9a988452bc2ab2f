/** `grpc`: sends queries to servers that speak DNS over gRPC. */
import { optionLines, zonesOfWord } from "../../plugin/contract/zone-claims.ts";
import { definePlugin } from "../../plugin/index.ts";
import { config } from "./config.ts";
import { GrpcForwarder } from "./handler.ts";

export default definePlugin({
  name: "grpc",
  summary: "Forwards queries to upstream servers over gRPC.",
  claims: (directive) => ({
    zones: directive.args.slice(0, 1),
    passesOn: optionLines(directive, "except").flatMap(({ args }) => args.flatMap(zonesOfWord)),
  }),
  config,
  create: (values, site) => new GrpcForwarder(values, site),
});
