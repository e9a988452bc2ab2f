import { formatPlace } from "../corefile/diagnostic.ts";
import type { Directive } from "../corefile/tree.ts";
import { Name } from "../dns/name.ts";
import type { LintRule } from "./rule.ts";

/** Finds a `log` that never applies: the first `log` with a matching name decides, whatever it logs. */
export const logShadowed: LintRule = {
  code: "LINT_LOG_SHADOWED",
  about: "an earlier 'log' decides about all queries of a later one",

  check({ blocks }, report) {
    for (const { directives } of blocks) {
      const logs = directives.filter(({ name }) => name.text === "log");
      for (const [index, log] of logs.entries()) {
        const scopes = scopesOf(log);
        if (scopes.length === 0) continue;
        const first = logs
          .slice(0, index)
          .find((other) =>
            scopes.every((scope) => scopesOf(other).some((taken) => scope.isAtOrBelow(taken))),
          );
        if (first === undefined) continue;
        report.warning(
          logShadowed.code,
          log.name.span,
          `this 'log' logs nothing: the one at ${formatPlace(first.name.span)} decides about all of its names`,
          { expected: "one 'log' for these names, or the one with narrower names first" },
        );
      }
    }
  },
};

/** The names of a directive. The last of several words is a format if it contains a brace. */
function scopesOf({ args }: Directive): readonly Name[] {
  const words = args.map(({ text }) => text);
  if (words.length > 1 && words.at(-1)?.includes("{")) words.pop();
  if (words.length === 0) return [Name.root];
  return words.flatMap((word) => Name.tryParse(word) ?? []);
}
