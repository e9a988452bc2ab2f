/** `limit`: limits how many queries and answers each client gets. */
import { definePlugin } from "../../plugin/index.ts";
import { limitDirective, settingsOf } from "./config.ts";
import { Limit } from "./limit.ts";

export default definePlugin({
  name: "limit",
  summary: "Limits the queries per second of each client, or its answers of some kinds.",
  config: limitDirective,
  create: (config, site) => new Limit(settingsOf(config), site),
});
