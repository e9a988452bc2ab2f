/** `loop`: stops the process when its own queries return to it. */
import { bareDirective, definePlugin } from "../../plugin/index.ts";
import { LoopDetector } from "./loop-detector.ts";

export default definePlugin({
  name: "loop",
  summary: "Detects forwarding loops at startup, and stops the server.",
  config: bareDirective(),
  create: (_config, site) => new LoopDetector(site),
});
