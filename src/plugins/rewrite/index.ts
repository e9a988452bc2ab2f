/** `rewrite`: changes queries for the plugins behind it, and replies for the client. */
import { customDirective, definePlugin } from "../../plugin/index.ts";
import { EdnsRule, SUBNET_CODE } from "./edns-rule.ts";
import { parseRule } from "./parse-rule.ts";
import { Rewriter } from "./rewriter.ts";

export default definePlugin({
  name: "rewrite",
  summary: "Rewrites queries on their way in, and responses on their way out.",
  config: customDirective(
    {
      usage: "[continue|stop] FIELD ARGS...",
      options: [],
    },
    (occurrences, context) => {
      const rules = occurrences.map((directive) => parseRule(directive, context));
      const read = rules.filter((rule) => rule !== undefined);
      return read.length < rules.length ? undefined : [read];
    },
  ),
  configure(rules, settings) {
    // A client must not get a reply for a subnet that a rule added (RFC 7871 section 7.2.2).
    for (const rule of rules)
      if (rule instanceof EdnsRule && rule.code !== SUBNET_CODE) settings.echoedOptions.push(rule.code);
  },
  create: (rules) => ({ handle: new Rewriter(rules).handle }),
});
