import { formatPlace } from "../corefile/diagnostic.ts";
import type { LintBlock } from "./lint-block.ts";
import { hasView } from "./listeners.ts";
import type { LintRule } from "./rule.ts";

/** Finds a zone of a plugin that another server block claims. */
export const shadowedZone: LintRule = {
  code: "LINT_ZONE_SHADOWED",
  about: "a zone of a plugin belongs to another server block on the same port",

  check(input, report) {
    for (const block of input.blocks) {
      if (block.settings.listensNowhere) continue;
      for (const { name, claims } of input.backEnds(block)) {
        for (const { zone, token } of claims) {
          if (token === undefined || !block.zones.some((own) => zone.isBelow(own))) continue;
          const owners = block.keys.map(
            ({ port }) => input.listeners.route(port, zone, (other) => listensAlike(other, block))?.block,
          );
          const [owner] = owners;
          const key = owner?.keys[0];
          if (owner === undefined || key === undefined) continue;
          if (owners.some((other) => other === undefined || other === block || hasView(other))) continue;
          report.warning(
            shadowedZone.code,
            token.span,
            `names in '${zone}' never reach this '${name}': the server block of '${key.zone}' gets them`,
            {
              expected: `the directive in the server block at ${formatPlace(key.span)}, or one server block for both`,
            },
          );
        }
      }
    }
  },
};

function listensAlike(one: LintBlock, other: LintBlock): boolean {
  const [hosts, others] = [one.settings.listenHosts, other.settings.listenHosts];
  return hosts.length === others.length && hosts.every((host) => others.includes(host));
}
