/** `acl`: allows or denies queries by client and type. */
import { definePlugin, merged } from "../../plugin/index.ts";
import { AccessControl } from "./access-control.ts";
import { ruleOfDirective } from "./config.ts";

export default definePlugin({
  name: "acl",
  summary: "Allows, blocks, filters or drops queries by client address and query type.",
  config: merged(ruleOfDirective),
  create: (rules, { metrics }) => new AccessControl(rules, metrics),
});
