import type { LintRule } from "./rule.ts";

/** Durations and options where a directive takes zones: they are zones then, of which nobody asks. */
export const zoneNotMeant: LintRule = {
  code: "LINT_ZONE_NOT_MEANT",
  about: "a duration or an option is taken for a zone",

  check({ blocks }, report) {
    for (const { directives } of blocks) {
      for (const { name, args } of directives) {
        for (const { text, span } of args) {
          const expected = MEANT.get(name.text)?.(text);
          if (expected === undefined) continue;
          report.warning(
            zoneNotMeant.code,
            span,
            `'${text}' is read as a zone: '${name.text}' applies only to names in it`,
            {
              expected,
            },
          );
        }
      }
    }
  },
};

const SECONDS: ReadonlyMap<string, number> = new Map([
  ["s", 1],
  ["m", 60],
  ["h", 3_600],
  ["d", 86_400],
]);

/** By directive: what to write instead, `undefined` for a word that is a zone. */
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
