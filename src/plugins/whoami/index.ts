/** `whoami`: returns the client's own address and port. */
import { definePlugin, directive } from "../../plugin/index.ts";
import { answerWhoami } from "./handler.ts";

export default definePlugin({
  name: "whoami",
  summary: "Answers every query with the address and port of the client.",
  claims: () => ({ zones: [] }),
  config: directive({ occurrences: "last" }),
  create: () => ({ handle: answerWhoami }),
});
