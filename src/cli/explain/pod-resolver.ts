/**
 * Models a pod's libc: the names it queries, their order, and when it stops. Covers `resolv.conf` as kubelet writes it
 * (docs/spec/kubernetes-dns.md#search-path) and the searches of glibc and musl.
 */

export interface ResolverSettings {
  /** Without final dots, in order. */
  readonly search: readonly string[];
  readonly ndots: number;
}

/** The DNS settings in a pod's manifest. */
export interface PodDns {
  readonly namespace: string;
  readonly policy: string;
  readonly hostNetwork: boolean;
  readonly config: {
    readonly nameservers: readonly string[];
    readonly searches: readonly string[];
    readonly ndots: number | undefined;
  };
}

export const LIBCS = ["glibc", "musl"] as const;
export type LibcName = (typeof LIBCS)[number];

/** kubelet keeps no more (Kubernetes 1.28 and later). */
const MAX_SEARCH_DOMAINS = 32;
const CLUSTER_NDOTS = 5;
const DEFAULT_NDOTS = 1;

/** The resolver settings of a pod, or the reason why it does not use the cluster's DNS. */
export function resolverSettings(
  pod: PodDns,
  clusterDomain: string,
): ResolverSettings | { readonly reason: string } {
  const { namespace, hostNetwork, config } = pod;
  const policy = effectivePolicy(pod);
  switch (policy) {
    case "ClusterFirst":
    case "ClusterFirstWithHostNet": {
      const cluster = [`${namespace}.svc.${clusterDomain}`, `svc.${clusterDomain}`, clusterDomain];
      return { search: joined(cluster, config.searches), ndots: config.ndots ?? CLUSTER_NDOTS };
    }
    case "None":
      return { search: joined([], config.searches), ndots: config.ndots ?? DEFAULT_NDOTS };
    default: {
      const cause =
        hostNetwork && pod.policy !== "Default"
          ? "it is on the host's network"
          : `its dnsPolicy is ${pod.policy}`;
      return { reason: `it uses the resolver of its node and not the cluster's: ${cause}` };
    }
  }
}

/** A pod on its node's network gets the node's resolver unless its manifest sets another policy. */
function effectivePolicy({ policy, hostNetwork }: PodDns): string {
  if (policy === "ClusterFirst" && hostNetwork) return "Default";
  return policy;
}

function joined(first: readonly string[], then: readonly string[]): string[] {
  const domains = [...first, ...then.map((domain) => domain.replace(/\.$/, ""))];
  return [...new Set(domains)].filter((domain) => domain !== "").slice(0, MAX_SEARCH_DOMAINS);
}

/** The names to query in order, with final dots, and the reason for the order. */
export interface SearchPlan {
  readonly names: readonly string[];
  readonly reason: string;
}

/** @param name as a program in the pod would give it */
export function planSearch(name: string, { search, ndots }: ResolverSettings, libc: LibcName): SearchPlan {
  if (name.endsWith("."))
    return { names: [name], reason: "the name ends with a dot: nothing is added to it" };
  const dots = name.split(".").length - 1;
  const below = search.map((domain) => `${name}.${domain}.`);
  const counted = `${dots} ${dots === 1 ? "dot" : "dots"}`;
  if (search.length === 0) return { names: [`${name}.`], reason: "there is no search path" };
  if (dots < ndots) {
    return {
      names: [...below, `${name}.`],
      reason: `${counted}, fewer than ndots:${ndots}: the search path comes first, and the name as written last`,
    };
  }
  if (libc === "musl") {
    return {
      names: [`${name}.`],
      reason: `${counted}, not fewer than ndots:${ndots}: musl asks only for the name as written`,
    };
  }
  return {
    names: [`${name}.`, ...below],
    reason: `${counted}, not fewer than ndots:${ndots}: the name as written comes first, and the search path after it`,
  };
}

/** The result for one of the names. */
export interface SearchResult {
  readonly rcode: string;
  /** Whether there is a record of the queried type. */
  readonly hasAnswer: boolean;
}

/** The reason why a libc does not try the next name; `undefined` if it does. */
export function whyEnough({ rcode, hasAnswer }: SearchResult, libc: LibcName): string | undefined {
  if (rcode === "NOERROR" && hasAnswer) return "an answer: the search ends here";
  if (libc === "glibc" || rcode === "NXDOMAIN") return undefined;
  return rcode === "NOERROR"
    ? "the name exists, but has no such record, and musl tries no other name"
    : `${rcode} ends the search of musl`;
}
