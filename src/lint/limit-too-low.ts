import { optionLines } from "../plugin/contract/zone-claims.ts";
import type { LintRule } from "./rule.ts";

/** Pods of one node at most, by the default of the kubelet (`maxPods`). */
const PODS_OF_NODE = 110;

/**
 * Finds limits that a node cache exceeds: it sends the queries of all pods of its node from one address. Only beside `kubernetes`, whose
 * clients are pods.
 */
export const limitTooLow: LintRule = {
  code: "LINT_LIMIT_TOO_LOW",
  about: "a limit allows an address fewer queries than a node cache sends",

  check({ blocks }, report) {
    for (const { directives } of blocks) {
      if (!directives.some(({ name }) => name.text === "kubernetes")) continue;
      for (const limit of directives.filter(({ name }) => name.text === "limit")) {
        const rate = optionLines(limit, "all").at(-1)?.args[0];
        const by = optionLines(limit, "by").at(-1)?.args[0]?.text ?? "address";
        if (rate === undefined || !/^\d+$/.test(rate.text) || Number(rate.text) >= PODS_OF_NODE) continue;
        if ((by !== "address" && by !== "prefix") || optionLines(limit, "exempt").length > 0) continue;
        const message = `${rate.text} queries per second are fewer than a node has pods: a node cache sends the queries of all of them from one address`;
        report.warning(limitTooLow.code, rate.span, message, {
          expected: `at least ${PODS_OF_NODE}, or 'exempt' with the addresses of the node caches`,
        });
      }
    }
  },
};
