/** The names that a `forward` answers for, by its words. */
import type { Directive } from "../../corefile/tree.ts";
import { Name } from "../../dns/index.ts";
import { optionLines, type ZoneClaims, zonesOfWord } from "../../plugin/contract/zone-claims.ts";

export function forwardClaims(directive: Directive): ZoneClaims {
  const passesOn = optionLines(directive, "except").flatMap(({ args }) => args.flatMap(zonesOfWord));
  const zones = directive.args.slice(0, 1);
  if (["next", "next_on_nodata"].every((name) => optionLines(directive, name).length === 0))
    return { zones, passesOn };
  // What lies below `except` goes on to any plugin; what the upstream does not know to a `forward` alone.
  return passesOn.length > 0
    ? { zones, passesOn: [Name.root] }
    : { zones, passesOn: [Name.root], passesOnlyTo: "forward" };
}
