/** AAAA queries in a cluster without IPv6. */
import { ofQueries, type Rule } from "./finding.ts";
import { LEAST_QUERIES, Tally } from "./traffic.ts";
import { dnsConfigPatch } from "./workload-names.ts";

const LEAST_SHARE = 0.2;

export const aaaaNoise: Rule = (_capture, traffic) => {
  if (traffic.isIpv4Only === false) return [];
  if (traffic.isIpv4Only === undefined)
    return [
      {
        code: "aaaa",
        reason: `whether the cluster has IPv6 is unknown: ${traffic.isListed ? "none of its Services is known" : "it is not listed yet"}`,
      },
    ];
  // Denials by the server's own rules cost next to nothing.
  const asked = [...traffic.groups].filter(({ type, plugin }) => type === "AAAA" && plugin !== "template");
  const count = asked.reduce((sum, { weight }) => sum + weight, 0);
  if (count < traffic.least(LEAST_QUERIES / 2) || traffic.share(count) < LEAST_SHARE) return [];
  const callers = new Tally();
  const workloads = new Map<string, string>();
  let fruitful = 0;
  let upstream = 0;
  for (const { who, workload, weight, hasAnswer, plugin } of asked) {
    callers.add(who, weight);
    if (workload !== undefined) workloads.set(who, dnsConfigPatch(workload, { name: "no-aaaa" }));
    if (hasAnswer) fruitful += weight;
    if (plugin === "forward") upstream += weight;
  }
  const top = callers.top(5);
  const patches = top.flatMap(([who]) => workloads.get(who) ?? []);
  return [
    {
      code: "aaaa",
      title: `the cluster has no IPv6, and ${ofQueries(count, traffic.total)} ask for AAAA`,
      explanation:
        `The C library asks for A and AAAA at once. ${ofQueries(fruitful, count)} of them brought an address, which no pod can reach; ` +
        `${Math.round(upstream)} went to upstreams.`,
      share: traffic.share(count),
      figures: { aaaa: count, answered: fruitful, upstream, queries: traffic.total },
      causes: top.map(([who, queries]) => ({ who, figure: ofQueries(queries, count) })),
      remedies: [
        {
          text: "answer AAAA here, at once and with no records, in the server blocks of the Corefile",
          patch: "template IN AAAA . {\n    rcode NOERROR\n}",
        },
        ...(patches.length === 0
          ? []
          : [
              {
                text: "or stop programs with glibc 2.36 and later from sending AAAA queries",
                patch: patches.join("\n"),
              },
            ]),
      ],
    },
  ];
};
