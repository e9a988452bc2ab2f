import { knowsPods } from "./metadata-missing.ts";
import type { LintRule } from "./rule.ts";

/** Finds an `autopath` whose block lacks the `kubernetes` that it depends on. */
export const clusterMissing: LintRule = {
  code: "LINT_CLUSTER_MISSING",
  about: "'autopath' needs a 'kubernetes' that its server block does not have, or needs its pods",

  check(input, report) {
    for (const { directives } of input.blocks) {
      const clusters = directives.filter(({ name }) => name.text === "kubernetes");
      for (const { name, args } of directives) {
        const source = args.at(-1);
        if (name.text !== "autopath" || source?.text !== "@kubernetes") continue;
        if (clusters.length === 0) {
          const text = "'autopath' has no 'kubernetes' in its server block: it does nothing";
          report.warning(clusterMissing.code, source.span, text, {
            expected: "a 'kubernetes' in the same server block",
          });
        } else if (!clusters.some(knowsPods)) {
          const text =
            "'autopath' does nothing: without 'pods verified', 'kubernetes' does not know which pod sends a query";
          const expected = "the line 'pods verified' in the block of 'kubernetes'";
          report.warning(clusterMissing.code, source.span, text, { expected });
        }
      }
    }
  },
};
