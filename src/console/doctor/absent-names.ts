/** Names that are configured in a client and do not exist. */
import { nearestWord } from "../../lib/text/nearest-word.ts";
import { nameWord } from "./command-words.ts";
import { type Cause, ofQueries, queryCount, type Remedy, type Rule } from "./finding.ts";
import { isOfSearchPath } from "./search-path.ts";
import { LEAST_QUERIES, Tally, type Traffic } from "./traffic.ts";

/** Minimum share of all queries: of all such names together, and of one name. */
const LEAST_SHARE = 0.02;
const LEAST_OF_NAME = 10;

export const absentNames: Rule = (_capture, traffic, { server }) => {
  const names = new Tally();
  const callers = new Map<string, Tally>();
  for (const group of traffic.groups) {
    if (group.rcode !== "NXDOMAIN" || isOfSearchPath(group, traffic)) continue;
    const name = meantName(group.name, group.namespace, traffic);
    // Reverse look-ups: an address without a name is normal.
    if (/\.(in-addr|ip6)\.arpa\.$/.test(name)) continue;
    // The name exists in another of its forms.
    if (traffic.wasFound(name)) continue;
    names.add(name, group.weight);
    const tally = callers.get(name) ?? new Tally();
    callers.set(name, tally);
    tally.add(group.who, group.weight);
  }
  const guilty = names.top(10).filter(([, count]) => count >= traffic.least(LEAST_OF_NAME));
  const count = guilty.reduce((sum, [, each]) => sum + each, 0);
  if (count < traffic.least(LEAST_QUERIES / 2) || traffic.share(count) < LEAST_SHARE) return [];
  const found = traffic.foundNames();
  return [
    {
      code: "absent-names",
      title: `${ofQueries(count, traffic.total)} are for ${guilty.length === 1 ? "a name" : `${guilty.length} names`} that exist${guilty.length === 1 ? "s" : ""} nowhere`,
      explanation: "The name exists in no form: neither as written nor with a search domain appended.",
      share: traffic.share(count),
      figures: { absent: count, names: guilty.length, queries: traffic.total },
      causes: guilty.map(([name, queries]): Cause => {
        const who =
          callers
            .get(name)
            ?.top(3)
            .map(([each]) => each) ?? [];
        return { who: name, figure: `${queryCount(queries)}, by ${who.join(", ")}` };
      }),
      remedies: guilty.slice(0, 5).map(([name]) => remedyFor(name, callers.get(name), found, server)),
    },
  ];
};

/**
 * The Service that a short name refers to: `db.svc.cluster.local.` of a client in `shop` means
 * `db.shop.svc.cluster.local.`.
 */
function meantName(name: string, namespace: string, traffic: Traffic): string {
  const [domain] = traffic.domains;
  if (domain === undefined) return name;
  const inside = traffic.inCluster(name);
  const labels = (inside ?? name.slice(0, -1)).split(".");
  if (inside === undefined) return labels.length > 1 ? name : `${labels[0]}.${namespace}.svc.${domain}`;
  if (labels.at(-1) === "svc") labels.pop();
  if (labels.length === 1) labels.push(namespace);
  return `${labels.join(".")}.svc.${domain}`;
}

function remedyFor(
  name: string,
  callers: Tally | undefined,
  found: ReadonlySet<string>,
  server: string,
): Remedy {
  const near = nearestWord(
    name,
    [...found].filter((each) => each.split(".").length === name.split(".").length),
  );
  const [who] = callers?.top(1)[0] ?? ["its clients"];
  const text =
    near === undefined
      ? `take ${name} out of the settings of ${who}, or make what it stands for`
      : `correct ${name} in the settings of ${who}: is ${near} meant?`;
  return { text, patch: `portolan explain ${nameWord(name)} ${server}` };
}
