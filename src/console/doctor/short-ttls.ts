/** Answers of upstreams with TTLs too short for a cache hit. */
import { countOf } from "../../lib/text/count-of.ts";
import { ofQueries, type Remedy, type Rule } from "./finding.ts";
import { ASKING_PLUGINS, SHORT_TTL } from "./query-groups.ts";
import { Tally } from "./traffic.ts";

const LEAST_SHARE = 0.05;
const LEAST_OF_NAME = 10;

export const shortTtls: Rule = ({ last }, traffic) => {
  const names = new Tally();
  const callers = new Map<string, Tally>();
  const ttls = new Map<string, number>();
  for (const { name, type, rcode, ttl, who, weight } of traffic.groups) {
    // Cached answers show the rest of a TTL: only answers from upstreams show the original.
    if (rcode !== "NOERROR" || ttl === undefined) continue;
    const key = `${name} ${type}`;
    names.add(key, weight);
    ttls.set(key, ttl);
    const tally = callers.get(key) ?? new Tally();
    callers.set(key, tally);
    tally.add(who, weight);
  }
  const guilty = names.top(10).filter(([, count]) => count >= traffic.least(LEAST_OF_NAME));
  const count = guilty.reduce((sum, [, each]) => sum + each, 0);
  if (guilty.length === 0 || traffic.share(count) < LEAST_SHARE) return [];
  const withoutCache = (last?.configuration.blocks ?? []).filter(({ chain }) => {
    const names = chain.map(({ name }) => name);
    return names.some((name) => ASKING_PLUGINS.has(name)) && !names.includes("cache");
  });
  return [
    {
      code: "short-ttls",
      title: `TTLs of ${SHORT_TTL} s and less send ${ofQueries(count, traffic.total)} to upstreams`,
      explanation: "Such an answer expires before the next query for it.",
      share: traffic.share(count),
      figures: { queries: count, names: guilty.length },
      causes: guilty.slice(0, 5).map(([key, queries]) => ({
        who: key,
        figure: `TTL ${ttls.get(key)} s, ${countOf(Math.round(queries), "time")} to the upstream, for ${callers
          .get(key)
          ?.top(2)
          .map(([who]) => who)
          .join(", ")}`,
      })),
      remedies: [
        ...withoutCache.map(
          ({ keys, file, line }): Remedy => ({
            text: `the server block ${keys.join(" ")} (${file}:${line}) has no cache at all`,
          }),
        ),
        {
          text: "cache answers for at least half a minute, if the applications tolerate that: add to 'cache' in the Corefile",
          patch: "success 9984 300 30",
        },
      ],
    },
  ];
};
