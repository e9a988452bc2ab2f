import type { Token } from "../corefile/tokens.ts";
import { areRelated, type Claim } from "./back-ends.ts";
import type { LintRule } from "./rule.ts";

/** Finds zones of a plugin that lie outside of the zones of its server block. */
export const zoneOutsideBlock: LintRule = {
  code: "LINT_ZONE_OUTSIDE_BLOCK",
  about: "a plugin is for zones that its server block does not have",

  check(input, report) {
    for (const block of input.blocks) {
      const chain = input.backEnds(block);
      // The plugin may be there only for its cluster, whose services are answered under other names.
      const servesOthers = chain.some(({ name }) => name === "k8s_external");
      if (block.zones.length === 0) continue;
      const own = `${block.zones.slice(0, 3).join(" ")}${block.zones.length > 3 ? " ..." : ""}`;
      const expected = `a zone at, above or below ${own}`;
      for (const { name, claims, zones } of chain) {
        if (name === "kubernetes" && servesOthers) continue;
        const outside = claims.filter(({ zone }) => !block.zones.some((ours) => areRelated(ours, zone)));
        if (zones.length === 0) outside.splice(1);
        const told = new Set<Token>();
        for (const { zone, token } of outside) {
          if (token === undefined || told.has(token) || isPartlyInside(token, claims, outside)) continue;
          told.add(token);
          const consequence = zones.length === 0 ? "never answers" : "never answers for this zone";
          const message = `'${name}' ${consequence}: this server block gets no queries for '${zone}'`;
          report.warning(zoneOutsideBlock.code, token.span, message, { expected });
        }
      }
    }
  },
};

/** A network may be several zones, some of which are the block's. */
function isPartlyInside(token: Token, claims: readonly Claim[], outside: readonly Claim[]): boolean {
  return claims.some((claim) => claim.token === token && !outside.includes(claim));
}
