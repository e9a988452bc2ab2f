import type { Name } from "../dns/name.ts";
import { type BackEnd, mention, stops } from "./back-ends.ts";
import type { LintRule } from "./rule.ts";
import { barrierBefore } from "./unreachable.ts";

/** Finds a plugin that keeps unknown names although a later plugin could answer them. */
export const fallthroughMissing: LintRule = {
  code: "LINT_FALLTHROUGH_MISSING",
  about: "a plugin without fallthrough keeps names that a later plugin could answer",

  check(input, report) {
    for (const block of input.blocks) {
      const chain = input.backEnds(block);
      const reported = new Set<BackEnd>();
      for (const hidden of chain) {
        const barrier = barrierBefore(hidden, chain);
        if (barrier === undefined || !barrier.hasFallthrough || reported.has(barrier)) continue;
        if (zoneComesFromFile(barrier)) continue;
        // Most plugins may occur only once in a block; they report that themselves.
        if (barrier.name === hidden.name && barrier.name !== "kubernetes") continue;
        reported.add(barrier);
        report.warning(
          fallthroughMissing.code,
          barrier.directive.name.span,
          `'${barrier.name}' has no fallthrough, so ${mention(hidden)} after it never gets a query`,
          { expected: `the line 'fallthrough' in the block of '${barrier.name}'` },
        );
      }
      for (const keeper of chain) {
        if (keeper.name !== "kubernetes" || reported.has(keeper)) continue;
        const lost = keeper.zones.filter(isWholeReverseTree).flatMap((zone) => {
          const asked = chain
            .slice(chain.indexOf(keeper) + 1)
            .find((other) => other.zones.some((taken) => zone.isAtOrBelow(taken)));
          return asked !== undefined && stops(keeper, asked, zone) ? [{ zone, asked }] : [];
        });
        const [first] = lost;
        if (first === undefined) continue;
        const zones = lost.map(({ zone }) => zone.toString()).join(" ");
        report.warning(
          fallthroughMissing.code,
          keeper.directive.name.span,
          `'kubernetes' denies every address in ${zones} outside the cluster: ${mention(first.asked)} never gets a query for them`,
          { expected: `the line 'fallthrough ${zones}' in the block of 'kubernetes'` },
        );
      }
    }
  },
};

/** In a block of the root, `file db` serves the zone of the SOA record in the file, and passes other names on. */
function zoneComesFromFile({ name, claims, zones }: BackEnd): boolean {
  return (
    name === "file" &&
    claims.every(({ token }) => token === undefined) &&
    zones.every((zone) => zone.labelCount === 0)
  );
}

/** Matches the reverse zones of the whole address space. No cluster owns all of it. */
function isWholeReverseTree(zone: Name): boolean {
  const text = zone.toString().toLowerCase();
  return text === "in-addr.arpa." || text === "ip6.arpa.";
}
