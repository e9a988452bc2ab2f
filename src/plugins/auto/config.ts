import { compilePattern, type Pattern, PatternError } from "../../lib/text/pattern.ts";
import { parseGoDuration } from "../../lib/time/duration.ts";
import { type Argument, type ArgumentCursor, INVALID } from "../../plugin/config/arguments.ts";
import { ignored } from "../../plugin/config/options.ts";
import {
  directive,
  fallthrough,
  option,
  required,
  single,
  text,
  type Value,
  ValueProblem,
  zones,
} from "../../plugin/index.ts";

/** The pattern of zone file names, and their origins. */
export interface FileNames {
  readonly pattern: Pattern;
  readonly origin: string;
}

const DEFAULT_INTERVAL = 60_000;

const interval: Value<number> = {
  expected: "a duration such as 30s, or 0 for never",
  parse(word) {
    const milliseconds = word === "0" ? 0 : parseGoDuration(word);
    if (milliseconds === undefined) return new ValueProblem(`time: invalid duration "${word}"`);
    return milliseconds < 0 ? new ValueProblem("invalid duration") : milliseconds;
  },
};

const pattern: Value<Pattern> = {
  expected: "a regular expression with a group, such as db\\.(.*)",
  parse(word) {
    try {
      const compiled = compilePattern(word);
      return compiled.groupCount === 0 ? new ValueProblem("Need at least one sub expression") : compiled;
    } catch (error) {
      if (error instanceof PatternError) return new ValueProblem(error.message);
      throw error;
    }
  },
};

/** Both or neither: a pattern needs an origin. */
function fileNames(): Argument<FileNames> {
  return {
    read(cursor: ArgumentCursor) {
      const token = cursor.take();
      if (token === undefined) return { pattern: compilePattern("db\\.(.*)"), origin: "{1}" };
      const compiled = cursor.value(token, pattern);
      if (compiled === INVALID) return INVALID;
      const origin = cursor.take();
      if (origin === undefined) return cursor.missing("ORIGIN_TEMPLATE", "an origin such as {1}");
      return { pattern: compiled, origin: origin.text };
    },
    usage: () => "[REGEXP ORIGIN_TEMPLATE]",
  };
}

export const autoConfig = directive({
  args: { zones: zones() },
  options: {
    directory: option({ path: required(text("a folder")), names: fileNames() }),
    reload: single(interval, DEFAULT_INTERVAL, { overlook: true }),
    fallthrough: fallthrough(),
    upstream: ignored("names that a zone points to are always looked up through this server"),
  },
  occurrences: "last",
});
