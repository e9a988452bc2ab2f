/** `bufsize`: an upper bound on the size of UDP messages. */
import { definePlugin, directive, integer, merged, optional } from "../../plugin/index.ts";
import { limitUdpSize } from "./handler.ts";

/** Fits into a packet on nearly every path without fragmentation (DNS flag day 2020). */
const DEFAULT_SIZE = 1232;

const size = integer({ min: 512, max: 4096, problem: () => "must be within 512 - 4096" });

export default definePlugin({
  name: "bufsize",
  summary: "Limits the size of UDP messages to prevent IP fragmentation.",
  config: merged(directive({ args: { size: optional(size, DEFAULT_SIZE) }, occurrences: "each" })),
  configure(lines, _settings, { report, span }) {
    if (lines.length < 2) return;
    const message = `'bufsize' appears ${lines.length} times: only the first counts`;
    report.warning("PLUGIN_REPEATED", span, message);
  },
  create: ([first]) => ({ handle: limitUdpSize(first?.size ?? DEFAULT_SIZE) }),
});
