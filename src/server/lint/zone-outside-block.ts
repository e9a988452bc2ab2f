import type { LintRule } from "./rule.ts";

/** A plugin whose zones all lie elsewhere than those of its server block. */
export const zoneOutsideBlock: LintRule = {
  code: "LINT_ZONE_OUTSIDE_BLOCK",
  about: "a plugin is for zones that its server block does not have",

  check(input, report) {
    for (const block of input.blocks) {
      const chain = input.backEnds(block);
      // It may stand there for its cluster alone, whose services are answered for under other names.
      const servesOthers = chain.some(({ name }) => name === "k8s_external");
      for (const { name, claims, zones } of chain) {
        if (name === "kubernetes" && servesOthers) continue;
        const token = claims[0]?.token;
        if (token === undefined || zones.length > 0 || block.zones.length === 0) continue;
        const own = block.zones.slice(0, 3).join(" ");
        report.warning(
          zoneOutsideBlock.code,
          token.span,
          `'${name}' never answers: no query of this server block is for '${claims[0]?.zone}'`,
          { expected: `a zone at, above or below ${own}${block.zones.length > 3 ? " ..." : ""}` },
        );
      }
    }
  },
};
