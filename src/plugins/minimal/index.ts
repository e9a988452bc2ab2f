/** `minimal`: leaves records out of answers that clients did not ask for. */
import { definePlugin, directive } from "../../plugin/index.ts";
import { MinimalReplies } from "./minimal-replies.ts";

export default definePlugin({
  name: "minimal",
  summary: "Leaves authority and additional records out of responses where possible.",
  config: directive({ occurrences: "last" }),
  create: (_config, { clock }) => ({ handle: new MinimalReplies(clock).handle }),
});
