/** The directive of CoreDNS before 1.7.0 (docs/spec/kube-dns.md#federation). */

import type { Directive } from "../../corefile/tree.ts";
import { Name } from "../../dns/index.ts";
import type { NodePlace } from "../../kubernetes/api/client/node-place.ts";
import { type ConfigSchema, customDirective, directive, type ZoneList, zones } from "../../plugin/index.ts";

export interface FederationConfig {
  readonly zones: ZoneList;
  /** Domains by name of the federation in lower case. */
  readonly federations: ReadonlyMap<string, Name>;
  /** Topology zone and region of this node; undefined to look them up. */
  readonly node: NodePlace | undefined;
}

const declared = directive({ args: { zones: zones() }, otherwise: () => true });

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i;

export const config: ConfigSchema<FederationConfig> = customDirective(
  {
    usage: "[ZONES...]",
    options: [{ name: "node_labels", usage: "ZONE REGION" }],
  },
  (occurrences, context) => {
    const read = declared.parse(occurrences, context);
    const [directiveLine] = occurrences;
    const [own] = read ?? [];
    if (own === undefined || directiveLine === undefined) return undefined;
    const federations = new Map<string, Name>();
    let node: FederationConfig["node"];
    let valid = true;
    const refuse = (line: Directive, message: string): void => {
      context.report.error("PLUGIN_BAD_VALUE", line.name.span, message);
      valid = false;
    };
    for (const line of directiveLine.block ?? []) {
      const name = line.name.text;
      const words = line.args.map(({ text }) => text);
      if (name === "node_labels") {
        const [zone = "", region = ""] = words;
        if (words.length === 2 && LABEL.test(zone) && LABEL.test(region)) node = { zone, region };
        // A line whose environment variables are empty counts as missing.
        else if (words.some((word) => word !== ""))
          refuse(line, "node_labels takes a zone and a region, each one label");
        continue;
      }
      const domain = words.length === 1 ? Name.tryParse(words[0] ?? "") : undefined;
      if (!LABEL.test(name) || domain === undefined) refuse(line, `'${name}' needs one domain: NAME DOMAIN`);
      else federations.set(name.toLowerCase(), domain);
    }
    if (!valid) return undefined;
    if (federations.size === 0) {
      context.report.error(
        "PLUGIN_BAD_VALUE",
        directiveLine.name.span,
        "at least one name=domain federation expected",
        {
          expected: "a line NAME DOMAIN in its block",
        },
      );
      return undefined;
    }
    const message =
      "'federation' was removed in CoreDNS 1.7.0 with the federation of clusters that it served: leave it out";
    context.report.warning("PLUGIN_OLD", directiveLine.name.span, message);
    return [{ zones: own.zones, federations, node }];
  },
);
