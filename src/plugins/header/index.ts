/** `header`: sets flags of queries and replies. */
import { Flag } from "../../dns/index.ts";
import { overlooked } from "../../plugin/config/arguments.ts";
import {
  choice,
  definePlugin,
  directive,
  merged,
  optionList,
  required,
  rest,
  type Value,
  ValueProblem,
} from "../../plugin/index.ts";
import { changeHeader, FlagChange } from "./handler.ts";

const FLAGS: ReadonlyMap<string, number> = new Map([
  ["aa", Flag.AA],
  ["ra", Flag.RA],
  ["rd", Flag.RD],
]);

const action = choice(["set", "clear"], {
  ignoreCase: true,
  problem: (word) => `unknown flag action=${word}, should be set or clear`,
});

const flag: Value<number> = {
  expected: "aa, ra or rd",
  parse: (word) =>
    FLAGS.get(word.toLowerCase()) ?? new ValueProblem(`unknown/unsupported flag=${word.toLowerCase()}`),
};

const rules = optionList({ action: required(action), flags: rest(flag) });

export default definePlugin({
  name: "header",
  summary: "Sets and clears header flags of queries and responses.",
  config: merged(
    directive({
      args: { more: overlooked() },
      options: { query: rules, response: rules },
      ignoreCase: true,
      occurrences: "each",
      check({ query, response }, report, at) {
        for (const [selector, lines] of [
          ["query", query],
          ["response", response],
        ] as const) {
          if (lines.every(({ flags }) => flags.length > 0)) continue;
          const message = "invalid length for flags, at least one should be provided";
          report.error("PLUGIN_ARGUMENT_MISSING", at(selector), message, { expected: flag.expected });
        }
        if (response.some(({ flags }) => flags.includes(Flag.RD))) {
          const message = "'rd' in a response has no effect: a reply repeats the flag of the query";
          report.warning("PLUGIN_OPTION_IGNORED", at("response"), message);
        }
      },
    }),
  ),
  configure(lines, _settings, { report, span }) {
    const withRules = lines.filter(({ query, response }) => query.length + response.length > 0).length;
    if (withRules === 0) {
      report.error("PLUGIN_EMPTY", span, "header without any rule", {
        expected: "a line such as: response set ra",
      });
    } else if (withRules > 1) {
      const message = `'header' appears ${withRules} times: only the first counts`;
      report.warning("PLUGIN_REPEATED", span, message);
    }
  },
  create(lines) {
    const first = lines.find(({ query, response }) => query.length + response.length > 0);
    return {
      handle: changeHeader(new FlagChange(first?.query ?? []), new FlagChange(first?.response ?? [])),
    };
  },
});
