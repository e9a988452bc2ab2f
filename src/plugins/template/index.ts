/** `template`: records out of the words of a query. */
import { optionLines } from "../../plugin/contract/zone-claims.ts";
import { definePlugin } from "../../plugin/index.ts";
import { templateConfig } from "./config.ts";
import { TemplateAnswers } from "./template-answers.ts";

export default definePlugin({
  name: "template",
  summary: "Answers queries from templates.",
  claims(directive) {
    const [, type, ...zones] = directive.args;
    // Only one that takes all names and types ends the chain for certain.
    const isForAll = type?.text.toUpperCase() === "ANY" && optionLines(directive, "match").length === 0;
    return isForAll ? { zones, hasFallthrough: true } : undefined;
  },
  config: templateConfig,
  create(rules, site) {
    const answers = new TemplateAnswers(rules, site.metrics);
    return { handle: (query, next) => answers.handle(query, next) };
  },
});
