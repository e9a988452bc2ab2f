/** `route53`: hosted zones of Amazon Route 53. */
import { definePlugin } from "../../plugin/index.ts";
import { route53Config } from "./config.ts";
import { createRoute53 } from "./handler.ts";

export default definePlugin({
  name: "route53",
  summary: "Serves zones of Amazon Route 53.",
  config: route53Config,
  create: createRoute53,
});
