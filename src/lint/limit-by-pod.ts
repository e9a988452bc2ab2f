import { optionLines } from "../plugin/contract/zone-claims.ts";
import type { LintRule } from "./rule.ts";

/** Finds limits by namespace or workload where the server never knows the pod of a client, so that each address has a limit of its own. */
export const limitByPod: LintRule = {
  code: "LINT_LIMIT_BY_POD",
  about: "a limit by namespace or workload in a server block that does not know pods",

  check({ blocks }, report) {
    for (const { directives } of blocks) {
      for (const limit of directives.filter(({ name }) => name.text === "limit")) {
        const by = optionLines(limit, "by").at(-1)?.args[0];
        if (by?.text !== "namespace" && by?.text !== "workload") continue;
        const knowsPods = directives.some(
          (other) =>
            other.name.text === "kubernetes" &&
            optionLines(other, "pods").at(-1)?.args[0]?.text === "verified",
        );
        const hasMetadata = directives.some(({ name }) => name.text === "metadata");
        if (knowsPods && hasMetadata) continue;
        const missing = hasMetadata ? "'kubernetes' with 'pods verified'" : "'metadata'";
        const message = `'by ${by.text}' limits each address on its own: this server block has no ${missing}`;
        report.warning(limitByPod.code, by.span, message, { expected: `${missing} in this server block` });
      }
    }
  },
};
