/** `ready`: reports over HTTP whether the plugins can answer queries. */
import { choice, definePlugin, directive, listenAddress, optional, single } from "../../plugin/index.ts";
import { Ready } from "./ready.ts";

const monitor = choice(["until-ready", "continuously"], {
  problem: (word) => `monitor type '${word}' not supported`,
});

export default definePlugin({
  name: "ready",
  summary: "Serves a readiness check over HTTP: whether all plugins can answer queries.",
  leaderOnly: true,
  config: directive({
    args: { address: optional(listenAddress(), ":8181") },
    options: { monitor: single(monitor, "until-ready") },
  }),
  httpAddress: ({ address }) => address,
  create: (config, site) => new Ready(config, site),
});
