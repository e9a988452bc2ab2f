/** The queries of a capture, counted for the rules. */
import type { Capture } from "./capture.ts";
import type { QueryGroup, QueryGroups } from "./query-groups.ts";
import type { Repeating } from "./repeats.ts";
import type { TrafficCounter } from "./traffic-counter.ts";

/** A share of fewer queries is not significant. */
export const LEAST_QUERIES = 50;

/** A count of fewer sampled groups may be chance. */
const LEAST_GRAINS = 4;

export class Traffic {
  /** Queries that no rule distinguishes, grouped. */
  readonly groups: QueryGroups;
  /** Queries, including those represented by sampled ones. */
  readonly total: number;
  /** Queries were sampled, so related ones may be missing. */
  readonly isSampled: boolean;
  /** Domains of the clusters, in lower case with final dot. */
  readonly domains: readonly string[];
  /** Whether the clusters are listed to the end: a missing Service does not exist then. */
  readonly isListed: boolean;
  /** Whether the clusters have no IPv6; `undefined` if unknown. */
  readonly isIpv4Only: boolean | undefined;
  /** Namespaces of clients, and of names that exist. */
  readonly namespaces: ReadonlySet<string>;
  readonly #counter: TrafficCounter;

  constructor({ traffic, last }: Pick<Capture, "traffic" | "last">) {
    this.#counter = traffic;
    this.groups = traffic.groups;
    this.total = traffic.total;
    this.isSampled = traffic.isSampled;
    this.namespaces = traffic.namespaces;
    const clusters = last?.now.clusters ?? [];
    this.domains =
      clusters.length > 0
        ? [...new Set(clusters.map(({ domain }) => `${domain.toLowerCase().replace(/\.$/, "")}.`))]
        : guessDomains(traffic.groups);
    this.isListed = clusters.every(({ awaited }) => awaited.length === 0);
    this.isIpv4Only = this.isListed ? isIpv4Only(clusters, traffic.hasIpv6Client) : undefined;
  }

  /** Whether a name, in lower case, exists. */
  wasFound(name: string): boolean {
    return this.#counter.found.has(name);
  }

  /** Whether a name, in lower case, was queried. */
  wasAsked(name: string): boolean {
    return this.#counter.asked.has(name);
  }

  /** Names that exist, at least the most frequent ones. */
  foundNames(): Set<string> {
    const names = new Set<string>();
    for (const { name, rcode } of this.groups) if (rcode === "NOERROR") names.add(name);
    return names;
  }

  /** Repeats by client. */
  repeats(): ReadonlyMap<string, Readonly<Repeating>> {
    return this.#counter.repeats.finish();
  }

  /**
   * The part of the name, in lower case, in front of a cluster's domain, without final dot; `undefined` outside
   * clusters.
   */
  inCluster(name: string): string | undefined {
    for (const domain of this.domains)
      if (name.endsWith(`.${domain}`)) return name.slice(0, -domain.length - 1);
    return undefined;
  }

  share(count: number): number {
    return this.total === 0 ? 0 : Math.min(1, count / this.total);
  }

  /** The number of queries of a kind that is significant. @param count without sampling */
  least(count: number): number {
    return Math.max(count, LEAST_GRAINS * this.groups.grain);
  }
}

/** Counts by key, the largest first. */
export class Tally {
  readonly #counts = new Map<string, number>();

  add(key: string, weight: number): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + weight);
  }

  get(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  get size(): number {
    return this.#counts.size;
  }

  top(most: number): [key: string, count: number][] {
    return [...this.#counts].sort((one, other) => other[1] - one[1]).slice(0, most);
  }
}

/** Without facts about the server: the domains that most often follow `.svc.`. */
function guessDomains(groups: Iterable<QueryGroup>): string[] {
  const tally = new Tally();
  for (const { name, weight } of groups) {
    const domain = /^.*?\.svc\.(.+)$/.exec(name)?.[1];
    // A second domain may be a search path that was appended to a full name.
    if (domain !== undefined) tally.add(domain.replace(/\.[^.]+\.svc\..*$/, "."), weight);
  }
  const [most] = tally.top(1);
  return most === undefined ? [] : [most[0]];
}

function isIpv4Only(
  clusters: readonly { readonly families: readonly string[] }[],
  hasIpv6Client: boolean,
): boolean | undefined {
  const families = clusters.flatMap((cluster) => cluster.families);
  if (families.includes("IPv6")) return false;
  // A client with such an address can use IPv6, whatever addresses its Services have.
  if (hasIpv6Client) return false;
  return families.length > 0 ? true : undefined;
}
