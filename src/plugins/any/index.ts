/** `any`: the minimal answer to a query of type ANY. */
import { definePlugin, directive } from "../../plugin/index.ts";
import { answerAny } from "./handler.ts";

export default definePlugin({
  name: "any",
  summary: "Answers queries of type ANY with a single small record (RFC 8482).",
  config: directive({ occurrences: "last" }),
  create: () => ({ handle: answerAny }),
});
