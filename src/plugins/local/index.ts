/** `local`: answers for names of this host. */
import { choice, definePlugin, directive, single } from "../../plugin/index.ts";
import { LocalNames } from "./local-names.ts";

export default definePlugin({
  name: "local",
  summary: "Answers for localhost and the reverse zones of 0, 127 and 255.",
  config: directive({
    options: { localhost_prefix: single(choice(["on", "off"]), "on") },
    occurrences: "last",
  }),
  create({ localhost_prefix }, { metrics }) {
    const requests = metrics.counter({
      name: "coredns_local_localhost_requests_total",
      help: "Counter of localhost.<domain> requests.",
    });
    return { handle: new LocalNames(localhost_prefix === "on", requests.slot()).handle };
  },
});
