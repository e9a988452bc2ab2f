/** Queries that were answered with SERVFAIL, by the plugin that failed and its reason. */
import type { Capture } from "./capture.ts";
import { nameWord } from "./command-words.ts";
import { ofQueries, percent, queryCount, type Rule } from "./finding.ts";
import { Tally } from "./traffic.ts";

/** A single failure may be chance. */
const LEAST = 3;
const LEAST_SHARE = 0.01;

export const servfail: Rule = (capture, traffic, { server }) => {
  const plugins = new Tally();
  const names = new Tally();
  const callers = new Tally();
  let count = 0;
  for (const { rcode, plugin, name, type, who, weight } of traffic.groups) {
    if (rcode !== "SERVFAIL") continue;
    count += weight;
    plugins.add(plugin === "" ? "the server" : plugin, weight);
    names.add(`${name} ${type}`, weight);
    callers.add(who, weight);
  }
  if (count < traffic.least(LEAST) || traffic.share(count) < LEAST_SHARE) return [];
  const byPlugin = plugins.top(4);
  const [example] = names.top(1);
  const [name = "", type = ""] = example?.[0].split(" ") ?? [];
  return [
    {
      code: "servfail",
      title: `${ofQueries(count, traffic.total)} failed with SERVFAIL: ${byPlugin
        .map(([plugin, queries]) => `${plugin} ${percent(queries / count)}`)
        .join(", ")}`,
      explanation:
        "SERVFAIL is a fault of this server or of what it asks. Clients repeat the query, and then report an error.",
      share: traffic.share(count),
      figures: { servfail: count, queries: traffic.total },
      causes: [
        ...byPlugin.map(([plugin, queries]) => ({
          who: plugin,
          figure: `${queryCount(queries)}${reasonOf(plugin, capture)}`,
        })),
        ...names.top(3).map(([who, queries]) => ({ who, figure: `${queryCount(queries)} failed` })),
        ...callers.top(3).map(([who, queries]) => ({ who, figure: `${queryCount(queries)} failed` })),
      ],
      remedies: [
        {
          text: "see the way of such a query through the server, with the reason of the failure",
          patch: `portolan explain ${nameWord(name)} ${type} ${server}`,
        },
      ],
    },
  ];
};

function reasonOf(plugin: string, { failures }: Capture): string {
  const failure = failures.find((each) => each.plugin === plugin);
  if (failure === undefined) return "";
  const { name, type, rcode, reason } = failure;
  if (reason !== "") return `: ${reason}`;
  return `; asked again, ${name} ${type} gets ${rcode === "-" ? "no reply" : rcode} now`;
}
