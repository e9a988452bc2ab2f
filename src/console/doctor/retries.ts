/** Clients that retry because there was no reply, or SERVFAIL. */
import { ofQueries, percent, type Remedy, type Rule } from "./finding.ts";
import { ASKING_PLUGINS } from "./query-groups.ts";
import { Tally, type Traffic } from "./traffic.ts";

const LEAST = 10;
/** Minimum share of the client's queries. */
const LEAST_SHARE = 0.02;
export const retries: Rule = (_capture, traffic) => {
  if (traffic.isSampled)
    return [
      {
        code: "retries",
        reason: "queries are sampled under this load, so repeats cannot be found",
      },
    ];
  const queries = new Tally();
  for (const { who, weight } of traffic.groups) queries.add(who, weight);
  const guilty = [...traffic.repeats()]
    .filter(([who, { retries }]) => retries >= LEAST && retries >= LEAST_SHARE * queries.get(who))
    .sort(([, one], [, other]) => other.retries - one.retries);
  if (guilty.length === 0) return [];
  const count = guilty.reduce((sum, [, { retries }]) => sum + retries, 0);
  const lost = guilty.reduce((sum, [, each]) => sum + each.lost, 0);
  return [
    {
      code: "retries",
      title: `${ofQueries(count, traffic.total)} are repeats: the first reply failed, came late or was lost`,
      explanation:
        lost > count / 2
          ? `${percent(lost / count)} of the questions had been answered in time: the replies were lost between here and the client, or the client dropped them.`
          : `${percent(1 - lost / count)} of the questions had failed or were answered too late.`,
      share: traffic.share(count),
      figures: { retries: count, repliesLost: lost, queries: traffic.total },
      causes: guilty
        .slice(0, 5)
        .map(([who, { retries }]) => ({ who, figure: ofQueries(retries, queries.get(who)) })),
      remedies: [lost > count / 2 ? LOST : lateRemedy(traffic)],
    },
  ];
};

const LOST: Remedy = {
  text: "run 'portolan node-cache' on the nodes, so that no query is translated on its way (conntrack races lose replies); until then, for glibc:",
  patch: "spec:\n  dnsConfig:\n    options:\n      - name: single-request-reopen",
};

/** Stale answers help only where upstreams fail: a cluster that is not listed has none to serve. */
function lateRemedy(traffic: Traffic): Remedy {
  let own = 0;
  let ofUpstreams = 0;
  for (const { rcode, plugin, weight } of traffic.groups) {
    if (rcode !== "SERVFAIL" || plugin === "cache") continue;
    if (ASKING_PLUGINS.has(plugin)) ofUpstreams += weight;
    else own += weight;
  }
  if (own > ofUpstreams) return { text: "remove the cause of the failures: see 'servfail'" };
  return {
    text: "fix the slow or failing upstreams, and serve stale answers until then: add to 'cache' in the Corefile",
    patch: "serve_stale 1h",
  };
}
