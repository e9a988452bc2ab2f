/** Counts the queries of a capture as they arrive, in bounded memory, so that a capture may have any length. */
import type { QueryRow } from "../api-types.ts";
import { DistinctNames } from "./name-set.ts";
import { QueryGroups } from "./query-groups.ts";
import { Repeats } from "./repeats.ts";

/** More namespaces than a cluster has. */
const MOST_NAMESPACES = 16_384;

export class TrafficCounter {
  readonly groups: QueryGroups = new QueryGroups();
  readonly repeats: Repeats = new Repeats();
  /** Names that exist, and all queried names, in lower case. */
  readonly found: DistinctNames = new DistinctNames();
  readonly asked: DistinctNames = new DistinctNames();
  /** Namespaces of clients, and of existing Services. */
  readonly namespaces: Set<string> = new Set();
  rows = 0;
  /** Queries, including those represented by sampled ones. */
  total = 0;
  /** Queries were sampled, so related ones may be missing. */
  isSampled = false;
  /** Whether a client has an IPv6 address. */
  hasIpv6Client = false;
  /** Milliseconds of the Unix epoch. */
  earliest: number = Number.POSITIVE_INFINITY;
  latest: number = Number.NEGATIVE_INFINITY;

  add(row: QueryRow): void {
    const { time, weight, client, workload, rcode } = row;
    this.rows++;
    this.total += weight;
    if (weight >= 2) this.isSampled = true;
    if (client.includes(":") && client !== "::1") this.hasIpv6Client = true;
    if (time < this.earliest) this.earliest = time;
    if (time > this.latest) this.latest = time;
    const name = row.name.toLowerCase();
    this.asked.add(name);
    if (workload !== undefined) this.#addNamespace(workload.slice(0, workload.indexOf("/")));
    if (rcode === "NOERROR") {
      this.found.add(name);
      const [, namespace] = /^[^.]+\.(?:[^.]+\.)*?([^.]+)\.svc\./.exec(name) ?? [];
      if (namespace !== undefined) this.#addNamespace(namespace);
    }
    this.groups.add(row, name);
    if (!this.isSampled) this.repeats.add(row);
  }

  #addNamespace(namespace: string): void {
    if (this.namespaces.size < MOST_NAMESPACES) this.namespaces.add(namespace);
  }
}
