/** `rrl`: limits equal responses to one network, against amplification attacks. */
import { definePlugin } from "../../plugin/index.ts";
import { rrlDirective, settingsOf } from "./config.ts";
import { ResponseRateLimit } from "./response-rate-limit.ts";

export default definePlugin({
  name: "rrl",
  summary: "Limits equal responses per second to each network, against amplification attacks.",
  config: rrlDirective,
  create: (config, site) => new ResponseRateLimit(settingsOf(config), site),
});
