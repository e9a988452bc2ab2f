import type { DiagnosticSink } from "../corefile/diagnostic.ts";
import { textOf } from "../corefile/history/line.ts";
import { oldLog } from "../corefile/history/old-log.ts";
import type { Token } from "../corefile/tokens.ts";
import type { Directive } from "../corefile/tree.ts";
import type { LintRule } from "./rule.ts";

/** Finds durations, options and files in the place of zones: they are read as zones that no client queries. */
export const zoneNotMeant: LintRule = {
  code: "LINT_ZONE_NOT_MEANT",
  about: "a duration, an option or a file is taken for a zone",

  check({ blocks }, report) {
    for (const { directives } of blocks) {
      for (const directive of directives) {
        for (const word of directive.args) {
          const expected = MEANT.get(directive.name.text)?.(word.text);
          if (expected !== undefined) warn(directive, word, expected, report);
        }
        const { words = [], today } = oldLog(directive) ?? {};
        for (const word of words) {
          const text = today === undefined ? "log" : textOf({ words: today.words });
          warn(
            directive,
            word,
            `'${text}': queries are logged to standard output, whatever is named`,
            report,
            ["'portolan migrate' rewrites the Corefile"],
          );
        }
      }
    }
  },
};

function warn(
  { name }: Directive,
  { text, span }: Token,
  expected: string,
  report: DiagnosticSink,
  notes: readonly string[] = [],
): void {
  const message = `'${text}' is read as a zone: '${name.text}' applies only to names in it`;
  report.warning(zoneNotMeant.code, span, message, {
    expected,
    ...(notes.length > 0 && { notes: [...notes] }),
  });
}

const SECONDS: ReadonlyMap<string, number> = new Map([
  ["s", 1],
  ["m", 60],
  ["h", 3_600],
  ["d", 86_400],
]);

/** By directive: the correct form, `undefined` for a word that is a zone. */
const MEANT: ReadonlyMap<string, (word: string) => string | undefined> = new Map([
  ["cache", meantForCache],
  ["log", meantForLog],
]);

function meantForCache(word: string): string | undefined {
  const [, digits = "", unit = ""] = /^(\d+)(s|m|h|d)$/.exec(word) ?? [];
  const seconds = SECONDS.get(unit);
  if (seconds !== undefined) return `a number of seconds: cache ${Number(digits) * seconds}`;
  const isOption = ["success", "denial", "prefetch", "serve_stale", "servfail", "disable"].includes(word);
  return isOption ? `'${word}' on its own line in a block after 'cache'` : undefined;
}

function meantForLog(word: string): string | undefined {
  const isClass = ["success", "denial", "error", "all"].includes(word);
  return isClass ? `the line 'class ${word}' in a block after 'log'` : undefined;
}
