/** Tries the names of a search path one after the other, until one exists. */
import { Name } from "../../dns/name.ts";
import { Flag, Rcode } from "../../dns/numbers.ts";
import { CNAME } from "../../dns/record-table.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { SearchPath, SearchPathSource } from "../../plugin/contract/search-path.ts";
import type {
  CounterSlot,
  Handler,
  MetricsRegistry,
  Next,
  Outcome,
  Query,
  Reply,
  ZoneList,
} from "../../plugin/index.ts";

/** RFC 1035 section 2.3.4. */
const MAX_NAME_OCTETS = 255;

export class SearchWalk {
  /** Provides the search path of a client; while undefined, queries pass unchanged. */
  source: SearchPathSource | undefined;
  readonly #zones: ZoneList;
  readonly #successes = new Map<string, CounterSlot>();
  readonly #slot: (server: string) => CounterSlot;

  constructor(zones: ZoneList, metrics: MetricsRegistry) {
    const family = metrics.counter({
      name: "coredns_autopath_success_total",
      help: "Queries answered with a name of the client's search path.",
      labels: ["server"],
    });
    this.#zones = zones;
    this.#slot = (server) => family.slot(server);
  }

  readonly handle: Handler = (query, next) => {
    if (this.source === undefined || query.type === RecordType.AXFR || query.type === RecordType.IXFR)
      return next(query);
    if (this.#zones.matchQuery(query) === undefined) {
      query.trace?.note("the name is in none of its zones");
      return next(query);
    }
    const path = this.source.searchPath(query);
    if (path instanceof Promise) return path.then((found) => this.#walk(query, next, found));
    return this.#walk(query, next, path);
  };

  #walk(query: Query, next: Next, path: SearchPath): Outcome | Promise<Outcome> {
    if (typeof path === "string") {
      query.trace?.note(`passed on unchanged: ${path}`);
      return next(query);
    }
    const [first] = path;
    // A search begins with the first name that a client makes of a relative one; other queries pass.
    if (first === undefined || !query.name.isBelow(first)) {
      query.trace?.note("passed on unchanged: the name is not the first one of a search");
      return next(query);
    }
    const outcome = next(query);
    if (outcome instanceof Promise)
      return outcome.then((settled) => this.#firstKnown(query, next, path, first, settled));
    return this.#firstKnown(query, next, path, first, outcome);
  }

  #firstKnown(
    query: Query,
    next: Next,
    path: readonly Name[],
    first: Name,
    outcome: Outcome,
  ): Outcome | Promise<Outcome> {
    if (!isToBeSearchedOn(outcome)) {
      if (outcome.kind === "reply") this.#found(query);
      return outcome;
    }
    return this.#search({ query, next, path, first, denial: outcome }, 1);
  }

  /** Continues at index `from` of the path; after its last name comes the root: the name as typed. */
  #search(walk: Walk, from: number): Outcome | Promise<Outcome> {
    const { query, next, path, first, denial } = walk;
    for (let at = from; at <= path.length; at++) {
      const suffix = path[at] ?? Name.root;
      // The client skips names that are too long, too.
      if (query.name.wire.length - first.wire.length + suffix.wire.length > MAX_NAME_OCTETS) continue;
      const asked = query.derive({ name: query.name.replaceSuffix(first, suffix) });
      const outcome = next(asked);
      if (outcome instanceof Promise) {
        return outcome.then((settled) =>
          isToBeSearchedOn(settled) ? this.#search(walk, at + 1) : this.#end(query, asked, settled),
        );
      }
      if (!isToBeSearchedOn(outcome)) return this.#end(query, asked, outcome);
    }
    query.trace?.note(`none of ${path.length + 1} names exists: the client continues the search itself`);
    return denial;
  }

  #end(query: Query, asked: Query, outcome: Outcome): Outcome {
    if (outcome.kind !== "reply") return outcome;
    query.trace?.note(`found as ${asked.name}`, { name: `${asked.name}` });
    this.#found(query);
    return renamed(outcome, query);
  }

  #found(query: Query): void {
    // A query without side effects is not counted.
    if (query.trace?.leavesNoMark === true) return;
    const { label } = query.listener;
    let slot = this.#successes.get(label);
    if (slot === undefined) {
      slot = this.#slot(label);
      this.#successes.set(label, slot);
    }
    slot.increment();
  }
}

interface Walk {
  readonly query: Query;
  readonly next: Next;
  readonly path: readonly Name[];
  readonly first: Name;
  /** The reply to the name in the client's query. */
  readonly denial: Outcome;
}

/**
 * Whether to try the next name: this one does not exist, or failed without a reason. A failure with a reason ends the
 * search.
 */
function isToBeSearchedOn(outcome: Outcome): boolean {
  if (outcome.kind === "reply") return outcome.rcode === Rcode.NXDOMAIN;
  return outcome.kind === "failed" && outcome.error === undefined;
}

/** Turns the reply to a name of the path into one for the client's name, with an alias. */
function renamed(reply: Reply, query: Query): Reply {
  const { answer } = reply;
  const found = answer.find(({ name }) => !name.equals(query.name));
  if (found !== undefined) {
    const alias = CNAME.create(query.name, found.ttl, { target: found.name });
    reply.replaceRecords({ answer: [alias, ...answer] });
    // The alias is not signed.
    reply.setFlag(Flag.AD, false);
  }
  reply.reencodeFor(query);
  return reply;
}
