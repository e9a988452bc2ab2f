/** The queries of a capture, counted once for all rules. */
import type { QueryRow } from "../api-types.ts";
import type { Capture } from "./capture.ts";
import { type WorkloadName, workloadName, workloadText } from "./workload-names.ts";

/** Plugins that ask others. */
export const ASKING_PLUGINS: ReadonlySet<string> = new Set(["forward", "grpc", "proxy"]);

/** A share of fewer queries says nothing. */
export const LEAST_QUERIES = 50;

export class Traffic {
  readonly rows: readonly QueryRow[];
  /** Queries, with those that others stand for. */
  readonly total: number;
  /** Some were left out, so what belongs together may not be seen together. */
  readonly isSampled: boolean;
  /** Domains of the clusters, in lower case with final dot. */
  readonly domains: readonly string[];
  /** Whether the clusters have no IPv6; `undefined` where that is not known. */
  readonly isIpv4Only: boolean | undefined;
  /** Namespaces of clients, and those that names were found in. */
  readonly namespaces: ReadonlySet<string>;
  /** Names that exist, and all that were asked for, in lower case. */
  readonly found: ReadonlySet<string>;
  readonly asked: ReadonlySet<string>;

  constructor({ rows, last }: Pick<Capture, "rows" | "last">) {
    this.rows = rows;
    this.total = rows.reduce((sum, { weight }) => sum + weight, 0);
    this.isSampled = rows.some(({ weight }) => weight >= 2);
    const clusters = last?.now.clusters ?? [];
    this.domains =
      clusters.length > 0
        ? [...new Set(clusters.map(({ domain }) => `${domain.toLowerCase().replace(/\.$/, "")}.`))]
        : guessDomains(rows);
    this.isIpv4Only = isIpv4Only(clusters, rows);
    const found = new Set<string>();
    const asked = new Set<string>();
    const namespaces = new Set<string>();
    for (const row of rows) {
      if (row.workload !== undefined) namespaces.add(row.workload.slice(0, row.workload.indexOf("/")));
      const name = row.name.toLowerCase();
      asked.add(name);
      if (row.rcode !== "NOERROR") continue;
      found.add(name);
      const inCluster = this.inCluster(name)?.split(".");
      if (inCluster?.at(-1) === "svc" && inCluster.length >= 3) namespaces.add(inCluster.at(-2) ?? "");
    }
    this.found = found;
    this.asked = asked;
    this.namespaces = namespaces;
  }

  /** What of the name, in lower case, stands in front of a cluster's domain, without final dot; `undefined` outside of clusters. */
  inCluster(name: string): string | undefined {
    for (const domain of this.domains)
      if (name.endsWith(`.${domain}`)) return name.slice(0, -domain.length - 1);
    return undefined;
  }

  share(count: number): number {
    return this.total === 0 ? 0 : count / this.total;
  }
}

/** Counts by a key, the largest first. */
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

/** Who asks, as people call it: the workload, else the address. */
export function whoAsks(row: QueryRow): string {
  const workload = workloadOf(row);
  return workload === undefined ? row.client : workloadText(workload);
}

export function workloadOf({ workload }: QueryRow): WorkloadName | undefined {
  return workload === undefined ? undefined : workloadName(workload);
}

/** The namespace of the client, else its address. */
export function namespaceOf({ workload, client }: QueryRow): string {
  return workload === undefined ? client : workload.slice(0, workload.indexOf("/"));
}

/** Without facts about the server: what most often stands behind `.svc.`. */
function guessDomains(rows: readonly QueryRow[]): string[] {
  const tally = new Tally();
  for (const { name, weight } of rows) {
    const domain = /^.*?\.svc\.(.+)$/.exec(name.toLowerCase())?.[1];
    // What follows the first may be a search path that was added to a whole name.
    if (domain !== undefined) tally.add(domain.replace(/\.[^.]+\.svc\..*$/, "."), weight);
  }
  const [most] = tally.top(1);
  return most === undefined ? [] : [most[0]];
}

function isIpv4Only(
  clusters: readonly { readonly families: readonly string[] }[],
  rows: readonly QueryRow[],
): boolean | undefined {
  const families = clusters.flatMap((cluster) => cluster.families);
  if (families.includes("IPv6")) return false;
  // A client with such an address has the use of it, whatever its Services have.
  if (rows.some(({ client }) => client.includes(":") && client !== "::1")) return false;
  return families.length > 0 ? true : undefined;
}
