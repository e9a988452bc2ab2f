/** `autopath`: follows the search path of clients on the server. */
import { definePlugin, directive } from "../../plugin/index.ts";
import { Autopath } from "./autopath.ts";
import { zonesAndSource } from "./config.ts";

export default definePlugin({
  name: "autopath",
  summary: "Follows the search path of clients on the server, so that they need one query.",
  config: directive({ args: { path: zonesAndSource() }, occurrences: "last" }),
  create: ({ path }, site) => new Autopath(path, site),
});
