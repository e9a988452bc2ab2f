/** `template`: makes records from the parts of a query. */
import { definePlugin } from "../../plugin/index.ts";
import { templateConfig } from "./config.ts";
import { TemplateAnswers } from "./template-answers.ts";

export default definePlugin({
  name: "template",
  summary: "Answers queries from templates.",
  config: templateConfig,
  create(rules, site) {
    const answers = new TemplateAnswers(rules, site.metrics);
    return { handle: (query, next) => answers.handle(query, next) };
  },
});
