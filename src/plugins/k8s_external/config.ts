/** The directive's arguments and options. */
import { Name, NameError } from "../../dns/name.ts";
import { isReverseZone } from "../../kubernetes/answers/cluster-zone.ts";
import { ExternalZone } from "../../kubernetes/external/external-zone.ts";
import {
  directive,
  domainName,
  type Fallthrough,
  fallthrough,
  flag,
  integer,
  single,
  type ZoneList,
  zones,
} from "../../plugin/index.ts";

export interface ExternalConfig {
  readonly zones: ZoneList;
  /** Relative to each zone. */
  readonly apex: Name;
  /** Seconds. */
  readonly ttl: number;
  readonly headless: boolean;
  readonly fallthrough: Fallthrough;
}

export const config = directive({
  args: { zones: zones() },
  options: {
    apex: single(domainName(), Name.parse("dns"), { overlook: true }),
    ttl: single(
      integer({ min: 0, max: 3600, problem: (word) => `ttl must be in range [0, 3600]: ${word}` }),
      5,
      { overlook: true },
    ),
    headless: flag(),
    fallthrough: fallthrough(),
  },
  check(values, report, at) {
    const apex = values.apex.toLowerCase();
    if (apex.isRoot || values.zones.zones.some((zone) => !fits(zone, apex))) {
      report.error("K8S_EXTERNAL_BAD_APEX", at("apex"), `'${apex}' cannot be prepended to every zone`, {
        expected: "a name relative to the zones, such as dns",
      });
    } else if (values.zones.zones.every((zone) => isReverseZone(zone))) {
      report.warning(
        "K8S_EXTERNAL_NO_FORWARD_ZONE",
        at(),
        "all zones are reverse zones, so there is no zone for the names of Services",
        { expected: "at least one zone such as example.org" },
      );
    }
  },
});

/** Whether the names of the server fit into the maximum length of a name. */
function fits(zone: Name, apex: Name): boolean {
  try {
    return new ExternalZone(zone, apex).mailbox.wire.length > 0;
  } catch (error) {
    if (error instanceof NameError) return false;
    throw error;
  }
}
