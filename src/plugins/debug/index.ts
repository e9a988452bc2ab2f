/** `debug`: more detail in the process log. */
import { definePlugin, directive } from "../../plugin/index.ts";

export default definePlugin({
  name: "debug",
  summary: "Logs debug messages, and the stack traces of plugins that fail.",
  config: directive({ occurrences: "each" }),
  configure(_config, settings) {
    settings.debug = true;
  },
});
