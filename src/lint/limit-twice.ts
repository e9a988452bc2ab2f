import type { LintRule } from "./rule.ts";

/** Finds `limit` and `rrl` in one server block: a query pays twice, and the lower of two limits is hard to find. */
export const limitTwice: LintRule = {
  code: "LINT_LIMIT_TWICE",
  about: "'limit' and 'rrl' limit the same queries",

  check({ blocks }, report) {
    for (const { directives } of blocks) {
      const limit = directives.find(({ name }) => name.text === "limit");
      const rrl = directives.find(({ name }) => name.text === "rrl");
      if (limit === undefined || rrl === undefined) continue;
      const message = `'rrl' and the 'limit' on line ${limit.name.span.line} limit the same queries: each takes its own tokens`;
      report.warning(limitTwice.code, rrl.name.span, message, { expected: "one of the two" });
    }
  },
};
