/** The most frequent clients and names, each with its own top list, and the namespaces of clients. */
import { Name } from "../dns/name.ts";
import { Rcode } from "../dns/numbers.ts";
import type { FinishedQuery } from "../plugin/stream/query-reader.ts";
import type { TopRow, WhoView } from "./api-types.ts";
import { leastOf, TopSketch } from "./top-sketch.ts";
import type { Workloads } from "./workloads.ts";

const KEYS = 512;
const INNER_KEYS = 8;
const NAMESPACES = 256;
/** Milliseconds after which counts are halved. */
const HALF_LIFE = 10 * 60_000;

export class TopLists {
  /** Those of the configuration in force. */
  workloads: Workloads;
  readonly #clients = new TopSketch(KEYS, INNER_KEYS);
  readonly #names = new TopSketch(KEYS, INNER_KEYS);
  readonly #namespaces = new TopSketch(NAMESPACES, INNER_KEYS);
  #fadesAt = 0;

  constructor(workloads: Workloads) {
    this.workloads = workloads;
  }

  /** @param now milliseconds that never go back */
  advance(now: number): void {
    if (this.#fadesAt === 0) this.#fadesAt = now + HALF_LIFE;
    if (now < this.#fadesAt) return;
    this.#fadesAt = now + HALF_LIFE;
    for (const sketch of [this.#clients, this.#names, this.#namespaces]) sketch.fade();
  }

  count(query: FinishedQuery): void {
    const { client, weight, rcode } = query;
    const name = nameOf(query).toLowerCase().toString();
    const byClient = this.#clients.add(client, weight);
    const byName = this.#names.add(name, weight);
    byClient.inner?.add(name, weight);
    byName.inner?.add(client, weight);
    const namespace = this.workloads.namespaceOf(client);
    const entries = [byClient, byName];
    if (namespace !== undefined) {
      const byNamespace = this.#namespaces.add(namespace, weight);
      byNamespace.inner?.add(name, weight);
      entries.push(byNamespace);
    }
    for (const entry of entries) {
      if (rcode === Rcode.NXDOMAIN) entry.nxdomain += weight;
      else if (rcode === Rcode.SERVFAIL) entry.servfail += weight;
    }
  }

  view(most: number): WhoView {
    const clients = this.#rows(this.#clients, most, true, false);
    const names = this.#rows(this.#names, most, false, true);
    const namespaces = this.#rows(this.#namespaces, most, false, false);
    return {
      queries: Math.round(this.#clients.total),
      clients,
      names,
      namespaces,
      others: {
        clients: othersThan(clients, this.#clients),
        names: othersThan(names, this.#names),
        namespaces: othersThan(namespaces, this.#namespaces),
      },
    };
  }

  #rows(sketch: TopSketch, most: number, isClient: boolean, ofClients: boolean): TopRow[] {
    return sketch.known(most).map((entry) => ({
      ...this.#named(entry.key, isClient),
      queries: Math.round(leastOf(entry)),
      more: Math.round(entry.error),
      nxdomain: Math.round(entry.nxdomain),
      servfail: Math.round(entry.servfail),
      of: (entry.inner?.known(INNER_KEYS) ?? []).map((inner) => ({
        ...this.#named(inner.key, ofClients),
        queries: Math.round(leastOf(inner)),
      })),
    }));
  }

  #named(key: string, isClient: boolean): { readonly key: string; readonly workload?: string } {
    const workload = isClient ? this.workloads.of(key) : undefined;
    return workload === undefined ? { key } : { key, workload };
  }
}

/** Queries of a sketch that belong to no row. */
function othersThan(rows: readonly TopRow[], { total }: TopSketch): number {
  return Math.max(0, Math.round(total) - rows.reduce((sum, { queries }) => sum + queries, 0));
}

export function nameOf({ octets, nameStart, nameEnd }: FinishedQuery): Name {
  // The memory is shared, so a copy is kept.
  return Name.fromCheckedWire(Uint8Array.from(octets.subarray(nameStart, nameEnd)));
}
