/** `cancel`: limits the time of a query. */
import { parseGoDuration } from "../../lib/time/duration.ts";
import { definePlugin, directive, duration, optional } from "../../plugin/index.ts";
import { withDeadline } from "./handler.ts";

const DEFAULT_TIMEOUT = 5_001;
const NANOSECOND = 1e-6;

const timeout = duration({
  min: NANOSECOND,
  problem: (word) =>
    parseGoDuration(word) === undefined
      ? `invalid duration: "${word}"`
      : `invalid negative duration: "${word}"`,
});

export default definePlugin({
  name: "cancel",
  summary: "Sets a deadline for each query, after which plugins stop working on it.",
  config: directive({ args: { timeout: optional(timeout, DEFAULT_TIMEOUT) }, occurrences: "last" }),
  create: (config) => ({ handle: withDeadline(config.timeout) }),
});
