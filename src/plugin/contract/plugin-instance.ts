import type { Name } from "../../dns/name.ts";
import type { Handler } from "../chain/handler.ts";
import type { Failure } from "../query/outcome.ts";
import type { Query } from "../query/query.ts";
import type { AnswerWitness } from "../query/repetition.ts";
import type { Reply } from "../query/reply.ts";
import type { ZoneList } from "../query/zones.ts";
import type { ClusterClients } from "./cluster-clients.ts";
import type { SearchPathSource } from "./search-path.ts";
import type { Offer } from "./service.ts";
import type { TransferSource } from "./transfer.ts";

/** A running plugin. All members are optional; hooks run in chain order, then in the order of the blocks. */
export interface PluginInstance {
  /** Absent for a plugin that is not in the query chain. */
  readonly handle?: Handler;
  /**
   * Of a handler that only looks at what comes back: it can do without seeing each answer that is given again, and hears of them later. What
   * it does with an answer must depend on nothing but the octets of the query.
   */
  readonly witness?: AnswerWitness | undefined;
  /**
   * True for a handler that only records what clients ask, such as a log. Queries that no client sent (`explain`) then go past it. Without
   * this, what an external plugin counts and logs for such a query is left out, but its handler is called.
   */
  readonly recordsOnly?: boolean;
  /** What it does with dynamic updates (RFC 2136) of a block that takes them. Absent for a plugin that they pass by. */
  readonly handleUpdate?: Handler | undefined;
  /**
   * A reload: takes all plugins of the configuration that still answers, so that what they know need not be lost. Called for all
   * instances before {@link start} of any, in each data plane. They may be of another version of their module.
   */
  inherit?(predecessors: readonly PlacedPlugin[]): void | Promise<void>;
  /**
   * Looks at the files that {@link start} is going to need, and keeps nothing: for `portolan check`. Throws a `SetupError` where the
   * start would be refused.
   */
  examine?(): void | Promise<void>;
  /** Opens what it needs, before the DNS sockets listen. Throwing refuses the start, or the reload. */
  start?(): void | Promise<void>;
  /**
   * Waits until what it answers from is there, for as long as it wants to be waited for. Called after {@link start}, for all instances
   * at once, on the main thread. At the start of the process the server listens meanwhile, so that everything else is answered; a
   * reload waits for it before this instance takes over, and so do commands that ask without listening. {@link stop} ends the wait.
   */
  warmUp?(): Promise<void>;
  /** Called when the server listens, at start and after every reload. */
  started?(): void;
  /** Is it ready to answer? Asked by `ready`. */
  ready?(): boolean;
  /**
   * Has it become unfit to answer? Asked by `ready` each time, also of who was ready once: for what an operator has asked to count. Such
   * a plugin is not {@link ready} either.
   */
  unfit?(): boolean;
  /** How it stands, for people: lines without the plugin's name. `ready` shows them to who asks for more than yes or no. */
  describeState?(): readonly string[];
  /** The process is about to stop, while everything still answers: wait here for lame ducks. */
  drain?(): Promise<void>;
  /** Closes all that it opened. Called once, when no query is in the chain any more. */
  stop?(): void | Promise<void>;
  /** Like {@link stop}, but the process ends: for what a reload must not do (`on shutdown`). Called before `stop`. */
  shutdown?(): void | Promise<void>;
  /** May this block answer the query? Blocks of one zone are asked in the order of the Corefile (`view`). */
  accepts?(query: Query): boolean;
  /**
   * Switches metadata on for the block: each of its queries gets a map of labels before the filters are asked, and for those
   * in these zones the instances with {@link provideMetadata} fill it (src/plugins/metadata/README.md).
   */
  readonly metadataZones?: ZoneList;
  /** Called for a query of this block before the chain, when `metadata` is on: sets labels with `query.setMetadata`. */
  provideMetadata?(query: Query): void;
  /** The cluster whose names it serves, for who asks as one of its pods (`explain`). */
  readonly cluster?: ClusterClients;
  /**
   * The data of another plugin of the configuration changed: answers that were kept for these names, and for all below them, are no
   * longer true, nor are those that lead to them. Called by that plugin through `site.changingNames`.
   */
  forget?(names: readonly Name[]): void;
  /** Zones that it has and that may be copied as a whole. Complete from `started` on; one may have none before. */
  readonly transferSource?: TransferSource | undefined;
  /** What it knows of the search paths of clients (`autopath @NAME`). */
  readonly searchPathSource?: SearchPathSource;
  /** What it does for other plugins of its block beyond what this contract knows. */
  readonly services?: readonly Offer<unknown>[];
  /** A query of the listener that no block took, and what the server says to it. Asked of one instance a listener. */
  unrouted?(query: Query, outcome: Reply | Failure): void;
}

export interface PlacedPlugin {
  readonly name: string;
  readonly instance: PluginInstance;
}

/** Whether CoreDNS has a link for it in the chain of queries: also for a plugin that only filters queries, or collects metadata of them. */
export function isInChain(instance: PluginInstance): boolean {
  return (
    instance.handle !== undefined || instance.accepts !== undefined || instance.metadataZones !== undefined
  );
}
