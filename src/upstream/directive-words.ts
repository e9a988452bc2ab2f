/** Arguments shared by the directives that send queries to other servers. */
import type { Name } from "../dns/index.ts";
import { type Argument, INVALID, rest, zones } from "../plugin/config/arguments.ts";
import { parseZones, ValueProblem } from "../plugin/config/values.ts";
import type { ZoneList } from "../plugin/query/zones.ts";
import { MAX_TARGETS, type Target, type TargetRules, target } from "./targets.ts";

/** The zone whose queries go to other servers. */
export const fromZone: Argument<Name> = {
  read(cursor, label) {
    const token = cursor.take();
    if (token === undefined) return cursor.missing(label, "a zone such as . or example.org");
    const parsed = parseZones(token.text);
    const zone = parsed instanceof ValueProblem ? undefined : parsed[0];
    if (parsed instanceof ValueProblem || zone === undefined) {
      cursor.context.report.error("PLUGIN_BAD_VALUE", token.span, `unable to normalize '${token.text}'`, {
        expected: "a zone such as . or example.org",
      });
      return INVALID;
    }
    if (parsed.length > 1) {
      cursor.context.report.warning(
        "FORWARD_ZONE_IN_PARTS",
        token.span,
        `'${token.text}' stands for ${parsed.length} zones, of which only '${zone}' is forwarded`,
        { expected: "one zone: write a line for each" },
      );
    }
    return zone;
  },
  usage: (label) => label,
};

/** The servers that a directive names, at most {@link MAX_TARGETS} words. */
export function targets(rules: TargetRules): Argument<readonly Target[]> {
  return {
    read(cursor, label) {
      const all = rest(target(rules), 1).read(cursor, label);
      if (all === INVALID || all.length <= MAX_TARGETS) return all;
      cursor.context.report.error(
        "PLUGIN_BAD_VALUE",
        cursor.owner.span,
        `more than ${MAX_TARGETS} TOs configured: ${all.length}`,
        { expected: `at most ${MAX_TARGETS}; a file or a host name may stand for more` },
      );
      return INVALID;
    },
    usage: (label) => `${label}...`,
  };
}

/** Unlike other lists of zones, this one must not be empty. */
export const zonesGiven: Argument<ZoneList> = {
  read(cursor, label) {
    return cursor.peek() === undefined ? cursor.missing(label, "a zone") : zones().read(cursor, label);
  },
  usage: (label) => `${label}...`,
};
