/**
 * Names made by the search path of `resolv.conf`: with `ndots:5` each short name is first tried in every search
 * domain.
 */
import { type Cause, ofQueries, percent, queryCount, type Remedy, type Rule } from "./finding.ts";
import type { QueryGroup } from "./query-groups.ts";
import { LEAST_QUERIES, Tally, type Traffic } from "./traffic.ts";
import { dnsConfigPatch, type WorkloadName } from "./workload-names.ts";

/** Minimum share of a namespace's queries: less is normal for resolvers. */
const LEAST_SHARE = 0.1;
const MOST_CAUSES = 5;

/** Whether a search path made the name. @param group was denied */
export function isOfSearchPath({ name }: QueryGroup, traffic: Traffic): boolean {
  return isClusterSuffixAdded(name, traffic) || isFoundShorter(name, traffic);
}

/** `api.example.com.shop.svc.cluster.local.`: another full name in front of the search domain. */
function isClusterSuffixAdded(name: string, traffic: Traffic): boolean {
  const inside = traffic.inCluster(name);
  if (inside === undefined) return false;
  const labels = inside.split(".");
  // With namespace, without, and the cluster's domain alone.
  const fronts = [
    ...(labels.at(-1) === "svc" ? [labels.slice(0, -2), labels.slice(0, -1)] : []),
    ...(labels.at(-1) === "svc" ? [] : [labels]),
  ];
  for (const front of fronts) {
    if (front.length === 0) continue;
    const text = front.join(".");
    if (traffic.inCluster(`${text}.`) !== undefined) return true;
    for (const domain of traffic.domains)
      if (traffic.wasFound(`${text}.svc.${domain}`) && `${text}.svc.${domain}` !== name) return true;
    if (front.length >= 2 && traffic.wasAsked(`${text}.`)) return true;
  }
  const [shortest] = fronts.sort((one, other) => one.length - other.length);
  if (shortest === undefined) return false;
  return shortest.length >= 2 && looksForeign(shortest, traffic);
}

/** An external name, and not one of a Service, a namespace or a port. */
function looksForeign(labels: readonly string[], { namespaces }: Traffic): boolean {
  const last = labels.at(-1) ?? "";
  if (last === "svc" || last === "pod" || namespaces.has(last)) return false;
  return /^[a-z]{2,24}$/.test(last) && !labels.some((label) => label.startsWith("_"));
}

/** `api.example.com.corp.example.`, if `api.example.com.` exists: a search domain of the node. */
function isFoundShorter(name: string, traffic: Traffic): boolean {
  const labels = name.slice(0, -1).split(".");
  for (let length = labels.length - 1; length >= 2; length--)
    if (traffic.wasFound(`${labels.slice(0, length).join(".")}.`)) return true;
  return false;
}

interface NamespaceSums {
  queries: number;
  denied: number;
  wasted: number;
  /** Short names of Services in other namespaces, such as `redis.data`, which need the search path. */
  short: number;
  readonly workloads: Map<string, { readonly name: WorkloadName; wasted: number }>;
}

export const searchPath: Rule = (_capture, traffic) => {
  if (traffic.domains.length === 0)
    return [{ code: "search-path", reason: "no cluster is known, and no name suggests one" }];
  const names = new Tally();
  const namespaces = new Map<string, NamespaceSums>();
  let denied = 0;
  for (const group of traffic.groups) {
    const { namespace: key, name, rcode, weight } = group;
    const sums = namespaces.get(key) ?? { queries: 0, denied: 0, wasted: 0, short: 0, workloads: new Map() };
    namespaces.set(key, sums);
    sums.queries += weight;
    const isShort = rcode === "NOERROR" && /^[^.]+\.[^.]+\.svc\./.test(name);
    if (isShort && !name.includes(`.${key}.svc.`)) sums.short += weight;
    if (rcode !== "NXDOMAIN") continue;
    denied += weight;
    sums.denied += weight;
    if (!isOfSearchPath(group, traffic)) continue;
    sums.wasted += weight;
    names.add(name, weight);
    if (group.workload === undefined) continue;
    const workload = sums.workloads.get(group.who) ?? { name: group.workload, wasted: 0 };
    workload.wasted += weight;
    sums.workloads.set(group.who, workload);
  }
  const guilty = [...namespaces]
    .filter(
      ([, { wasted, queries }]) =>
        wasted >= traffic.least(LEAST_QUERIES / 2) && wasted >= LEAST_SHARE * queries,
    )
    .sort(([, one], [, other]) => other.wasted - one.wasted);
  if (guilty.length === 0) return [];
  const wasted = guilty.reduce((sum, [, each]) => sum + each.wasted, 0);
  const [example] = names.top(1);
  return [
    {
      code: "search-path",
      title: `the search path wastes ${ofQueries(wasted, traffic.total)}, ${percent(wasted / denied)} of all NXDOMAIN`,
      explanation:
        `With ndots:5, the default of Kubernetes, a name with fewer than five dots is tried in each search domain first: such as ${example?.[0] ?? "-"}` +
        ` A final dot in the application's own settings avoids it as well; 'autopath @kubernetes' in the Corefile answers the first try.`,
      share: traffic.share(wasted),
      figures: { wasted, queries: traffic.total, nxdomain: denied },
      causes: guilty.slice(0, MOST_CAUSES).flatMap(([namespace, sums]) => causesOf(namespace, sums)),
      remedies: guilty.slice(0, MOST_CAUSES).flatMap(([namespace, sums]) => remediesOf(namespace, sums)),
    },
  ];
};

/** A client without a known pod has its address here. A namespace is one label. */
function isAddress(namespace: string): boolean {
  return /[.:]/.test(namespace);
}

function causesOf(namespace: string, { wasted, queries, denied, workloads }: NamespaceSums): Cause[] {
  return [
    {
      who: namespace,
      figure: `${ofQueries(wasted, queries)} of the ${isAddress(namespace) ? "client" : "namespace"}, ${percent(wasted / denied)} of its NXDOMAIN`,
    },
    ...heaviest(workloads).map(([who, each]) => ({
      who,
      figure: `${queryCount(each.wasted)} wasted`,
    })),
  ];
}

function remediesOf(namespace: string, { workloads, short, queries }: NamespaceSums): Remedy[] {
  // `redis.data` has one dot: with ndots:1 it is first tried as written, outside the cluster.
  const ndots = short > 0.05 * queries ? "2" : "1";
  const patches = heaviest(workloads).map(([, { name }]) =>
    dnsConfigPatch(name, { name: "ndots", value: ndots }),
  );
  const who = isAddress(namespace) ? `what runs at ${namespace}` : `the pods of ${namespace}`;
  const text = `make ${who} try names as written first (ndots:${ndots})`;
  if (patches.length === 0) return [{ text: `${text}: in spec.dnsConfig.options of its pods` }];
  return [{ text, patch: patches.join("\n") }];
}

function heaviest(workloads: NamespaceSums["workloads"]): [string, { name: WorkloadName; wasted: number }][] {
  return [...workloads].sort(([, one], [, other]) => other.wasted - one.wasted).slice(0, 3);
}
