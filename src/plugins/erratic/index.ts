/** `erratic`: a faulty server for tests of clients. */
import { overlooked } from "../../plugin/config/arguments.ts";
import { definePlugin, directive, duration, flag, integer, option, optional } from "../../plugin/index.ts";
import { ErraticServer } from "./erratic-server.ts";

const amount = integer({
  min: 0,
  max: 0x7fff_ffff,
  problem: (word) => `illegal amount value given '${word}'`,
});
const delay = duration({ min: 0, problem: (word) => `illegal duration value given '${word}'` });

export default definePlugin({
  name: "erratic",
  summary: "Drops, delays or truncates some responses, for tests of clients.",
  claims: () => ({ zones: [] }),
  config: directive({
    args: { more: overlooked() },
    options: {
      drop: option({ amount: optional(amount, 2) }),
      truncate: option({ amount: optional(amount, 2) }),
      delay: option({ amount: optional(amount, 2), duration: optional(delay, 100) }),
      large: flag(),
    },
    occurrences: "last",
  }),
  create({ drop, truncate, delay, large }, site) {
    const undemanding = delay === undefined && truncate === undefined;
    return new ErraticServer(
      {
        dropEach: drop?.amount ?? (undemanding ? 2 : 0),
        truncateEach: truncate?.amount ?? 0,
        delayEach: delay?.amount ?? 0,
        delay: delay?.duration ?? 0,
        copies: large ? 30 : 1,
      },
      site.clock,
    );
  },
});
