/** `loop`: ends the process when its own queries come back to it (CoreDNS facts 2.52). */
import { bareDirective, definePlugin } from "../../plugin/index.ts";
import { LoopDetector } from "./loop-detector.ts";

export default definePlugin({
  name: "loop",
  summary: "Detects at the start that queries are forwarded back to this server, and ends it.",
  config: bareDirective(),
  create: (_config, site) => new LoopDetector(site),
});
