/** `errors`: logs why queries failed. */
import { compilePattern, type Pattern, PatternError } from "../../lib/text/pattern.ts";
import { optionalWhen } from "../../plugin/config/arguments.ts";
import {
  choice,
  definePlugin,
  directive,
  duration,
  flag,
  optional,
  optionList,
  required,
  type Value,
  ValueProblem,
} from "../../plugin/index.ts";
import { ErrorLog } from "./error-log.ts";

const SHOW_FIRST = "show_first";
const MILLISECOND = 1;

const pattern: Value<Pattern> = {
  expected: "a regular expression",
  parse(word) {
    try {
      return compilePattern(word);
    } catch (error) {
      if (error instanceof PatternError) return new ValueProblem(error.message);
      throw error;
    }
  },
};

export default definePlugin({
  name: "errors",
  summary: "Logs errors that occur while queries are processed.",
  config: directive({
    args: { output: optional(choice(["stdout"], { problem: (word) => `invalid log file: ${word}` })) },
    options: {
      stacktrace: flag(),
      consolidate: optionList({
        period: required(duration({ min: MILLISECOND })),
        pattern: required(pattern),
        level: optionalWhen(choice(["warning", "error", "info", "debug"]), (word) => word !== SHOW_FIRST),
        show_first: optional(choice([SHOW_FIRST])),
      }),
    },
  }),
  configure({ stacktrace }, settings) {
    if (stacktrace) settings.stackTraces = true;
  },
  create({ consolidate }, { clock, log }) {
    const rules = consolidate.map(({ show_first, level, ...rule }) => ({
      ...rule,
      level: level ?? "error",
      showFirst: show_first !== undefined,
    }));
    const errors = new ErrorLog(rules, clock, log);
    return {
      handle: errors.handle,
      handleUpdate: errors.handle,
      stop: () => errors.stop(),
      recordsOnly: true,
    };
  },
});
