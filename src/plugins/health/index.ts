/** `health`: reports over HTTP that the process is alive. */
import { definePlugin, directive, duration, listenAddress, optional, single } from "../../plugin/index.ts";
import { Health } from "./health.ts";

const lameduck = duration({
  min: 0,
  problem: (word) => `unable to parse lameduck duration value: '${word}' : not a duration such as 5s`,
});

export default definePlugin({
  name: "health",
  summary: "Serves a health check over HTTP, and can delay shutdown.",
  leaderOnly: true,
  config: directive({
    args: { address: optional(listenAddress(), ":8080") },
    options: { lameduck: single(lameduck, 0) },
    occurrences: "last",
  }),
  httpAddress: ({ address }) => address,
  create: (config, site) => new Health(config, site),
});
