/** Chooses the server block that answers a query on one listener (docs/spec/coredns-behaviour.md#zone-choice). */
import { hashName, type Name } from "../../dns/name.ts";
import { FOLD, octetAt } from "../../dns/octets.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { Next } from "../../plugin/chain/handler.ts";
import type { PluginInstance } from "../../plugin/contract/plugin-instance.ts";
import type { Query } from "../../plugin/query/query.ts";
import type { AnswerWitness } from "../../plugin/query/repetition.ts";
import type { ZoneList } from "../../plugin/query/zones.ts";

/** One key of a server block on one listener. */
export interface Route {
  readonly zone: Name;
  /** `undefined` if no plugin of the block handles queries. */
  readonly chain: Next | undefined;
  /** The plugins for dynamic updates; `undefined` if the block accepts none. */
  readonly updateChain?: Next | undefined;
  /** Instances that may refuse a query for this block (`view`). */
  readonly filters: readonly PluginInstance[];
  readonly metadata: RouteMetadata | undefined;
  /** Whether a plugin of the block serves the zone from records of its own. */
  readonly servesZone?: (() => boolean) | undefined;
  /** The plugins to inform of repeated answers; `undefined` if answers must not be repeated. */
  readonly witnesses?: readonly AnswerWitness[] | undefined;
}

export interface RouteMetadata {
  readonly zones: ZoneList;
  readonly providers: readonly PluginInstance[];
}

export class RouteTable {
  readonly #byHash = new Map<number, Route[]>();
  readonly #root: Route[] = [];
  /** Whether the question alone decides which route takes a query, and a route allows repeated answers. */
  readonly mayRepeat: boolean;
  #onlyRoot = true;

  constructor(routes: readonly Route[]) {
    this.mayRepeat =
      routes.every(({ filters, metadata }) => filters.length === 0 && metadata === undefined) &&
      routes.some(({ witnesses }) => witnesses !== undefined);
    for (const route of routes) {
      if (route.zone.isRoot) {
        this.#root.push(route);
        continue;
      }
      this.#onlyRoot = false;
      const bucket = this.#byHash.get(route.zone.hash);
      if (bucket === undefined) this.#byHash.set(route.zone.hash, [route]);
      else bucket.push(route);
    }
  }

  /**
   * The route that takes the query: that of the longest zone with a route that accepts it. DS records belong to the
   * parent zone (RFC 4035 section 3.1.4.1), so the route of the next zone above takes a query for them, and the
   * zone's own only if there is no such route.
   */
  find(query: Query): Route | undefined {
    let childSide: Route | undefined;
    if (!this.#onlyRoot) {
      const { bytes, nameEnd } = query;
      for (let at = 12; octetAt(bytes, at) !== 0; at += octetAt(bytes, at) + 1) {
        const bucket = this.#byHash.get(hashName(bytes, at, nameEnd));
        const route = bucket === undefined ? undefined : acceptingRoute(bucket, query, at);
        if (route === undefined) continue;
        if (query.type !== RecordType.DS || at > 12) return route;
        childSide = route;
      }
    }
    for (const route of this.#root) {
      // A block for the root is the parent of top-level domains if it serves the root zone. Most only forward to
      // resolvers.
      if (childSide !== undefined && !isRootParentOf(route, query)) continue;
      if (route.chain !== undefined && accepts(route, query)) return route;
    }
    return childSide;
  }
}

function isRootParentOf({ servesZone }: Route, { bytes }: Query): boolean {
  return octetAt(bytes, 13 + octetAt(bytes, 12)) === 0 && servesZone?.() === true;
}

function acceptingRoute(bucket: readonly Route[], query: Query, at: number): Route | undefined {
  for (const route of bucket) {
    if (!suffixEquals(query, at, route.zone)) continue;
    if (route.chain === undefined || accepts(route, query)) return route;
  }
  return undefined;
}

function accepts(route: Route, query: Query): boolean {
  const { metadata } = query;
  if (route.metadata !== undefined) collectMetadata(route.metadata, query);
  for (const filter of route.filters) {
    if (filter.accepts?.(query) !== false) continue;
    // The metadata of this block must not reach the block that takes the query.
    query.metadata = metadata;
    return false;
  }
  return true;
}

function collectMetadata({ zones, providers }: RouteMetadata, query: Query): void {
  query.metadata = new Map();
  if (zones.matchQuery(query) === undefined) return;
  for (const provider of providers) provider.provideMetadata?.(query);
}

function suffixEquals(query: Query, at: number, zone: Name): boolean {
  const { folded } = zone;
  if (query.nameEnd - at !== folded.length) return false;
  for (let i = 0; i < folded.length; i++) {
    if (octetAt(FOLD, octetAt(query.bytes, at + i)) !== octetAt(folded, i)) return false;
  }
  return true;
}
