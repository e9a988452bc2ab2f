/** `reload`: applies changes of the Corefile. */
import { definePlugin, directive, duration, optional, type Value, ValueProblem } from "../../plugin/index.ts";
import { Reload } from "./reload.ts";

const interval = duration({ min: 2_000 });

const atLeastOneSecond = duration({ min: 1_000 });
const jitter: Value<number> = {
  expected: "a duration of 1s or more, or 0s for none",
  parse(word, context) {
    const milliseconds = duration().parse(word, context);
    if (milliseconds instanceof ValueProblem || milliseconds === 0) return milliseconds;
    return atLeastOneSecond.parse(word, context);
  },
};

export default definePlugin({
  name: "reload",
  summary: "Reloads the Corefile when it changes.",
  leaderOnly: true,
  config: directive({
    args: { interval: optional(interval, 30_000), jitter: optional(jitter, 15_000) },
    occurrences: "last",
  }),
  create: (config, site) => new Reload(config, site),
});
