/** `acl`: who may ask what (CoreDNS facts 2.34). */
import { definePlugin, merged } from "../../plugin/index.ts";
import { AccessControl } from "./access-control.ts";
import { ruleOfDirective } from "./config.ts";

export default definePlugin({
  name: "acl",
  summary: "Blocks, filters or drops queries by the address of the client and the type asked for.",
  config: merged(ruleOfDirective),
  create: (rules, { metrics }) => new AccessControl(rules, metrics),
});
