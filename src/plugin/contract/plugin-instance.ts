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
   * For a handler that only reviews outcomes: it need not see each repeated answer, and is informed of them later.
   * Its effect on an answer must depend only on the octets of the query.
   */
  readonly witness?: AnswerWitness | undefined;
  /**
   * True for a handler that only records client queries, such as a log. Queries that no client sent (`explain`) then
   * bypass it. Without this, the handler of an external plugin is called for them, but its counters and log lines are
   * suppressed.
   */
  readonly recordsOnly?: boolean;
  /** Handles dynamic updates (RFC 2136) in a block that accepts them. Without it, updates bypass the plugin. */
  readonly handleUpdate?: Handler | undefined;
  /**
   * Called in a reload with all plugins of the configuration in force, so that their data can be taken over. Called
   * for all instances before {@link start} of any, in each data plane. The predecessors may be of another version of
   * their module.
   */
  inherit?(predecessors: readonly PlacedPlugin[]): void | Promise<void>;
  /**
   * Checks the files that {@link start} will need, and keeps nothing: for `portolan check`. Throws a `SetupError` if
   * the start would be refused.
   */
  examine?(): void | Promise<void>;
  /** Opens the plugin's resources, before the DNS sockets listen. An exception refuses the start, or the reload. */
  start?(): void | Promise<void>;
  /**
   * Waits for the plugin's data, for a time that the plugin chooses. Called after {@link start}, for all instances in
   * parallel, on the main thread. At the start of the process the server already listens, so that other queries are
   * answered. A reload waits for it before this instance takes over, and so do commands that query without a
   * listener. {@link stop} ends the wait.
   */
  warmUp?(): Promise<void>;
  /** Called when the server listens, at start and after every reload. */
  started?(): void;
  /** Whether the plugin is ready to answer. Polled by `ready`. */
  ready?(): boolean;
  /**
   * Whether the plugin has become unfit to answer. Polled by `ready` on every request, even after {@link ready} has
   * returned true; for checks that an operator opted into. An unfit plugin is not {@link ready} either.
   */
  unfit?(): boolean;
  /** Human-readable status lines, without the plugin's name; `ready` shows them in its verbose output. */
  describeState?(): readonly string[];
  /**
   * The parts of its work that the plugin cannot do at present; empty while all is well. The console and `doctor` show
   * them.
   */
  faults?(): readonly PluginFault[];
  /** Called before the process stops, while everything still answers: wait here for lame ducks. */
  drain?(): Promise<void>;
  /** Closes everything that the plugin opened. Called once, when no query is in the chain any more. */
  stop?(): void | Promise<void>;
  /** Like {@link stop}, but only at the end of the process, not in a reload (`on shutdown`). Called before `stop`. */
  shutdown?(): void | Promise<void>;
  /** Whether this block answers the query. Blocks of one zone are tried in the order of the Corefile (`view`). */
  accepts?(query: Query): boolean;
  /**
   * Enables metadata for the block: each of its queries gets a map of labels before the filters run, and for queries
   * in these zones the instances with {@link provideMetadata} fill it (src/plugins/metadata/README.md).
   */
  readonly metadataZones?: ZoneList;
  /**
   * Called for a query of this block before the chain, if `metadata` is enabled: sets labels with
   * `query.setMetadata`.
   */
  provideMetadata?(query: Query): void;
  /** The cluster that the plugin serves, for queries in the name of one of its pods (`explain`). */
  readonly cluster?: ClusterClients;
  /**
   * The data of another plugin of the configuration changed: cached answers for these names, for all names below
   * them, and answers that lead to them are out of date. That plugin calls this through `site.changingNames`.
   */
  forget?(names: readonly Name[]): void;
  /** The plugin's zones that may be transferred. Complete from `started` on; earlier it may be empty. */
  readonly transferSource?: TransferSource | undefined;
  /** The search paths of clients (`autopath @NAME`). */
  readonly searchPathSource?: SearchPathSource;
  /** Services for other plugins of the block that have no member in this interface. */
  readonly services?: readonly Offer<unknown>[];
  /**
   * Called for a query of the listener that no block took, with the server's outcome. Only one instance per listener
   * is called.
   */
  unrouted?(query: Query, outcome: Reply | Failure): void;
}

/** A part of a plugin's work that fails at present. */
export interface PluginFault {
  /** An upstream, a zone, a resource of the cluster: `10.0.0.53:53`, `example.org.`, `endpoints`. */
  readonly subject: string;
  /** In the words of the log. */
  readonly reason: string;
}

/** An instance in its block. */
export interface PlacedPlugin {
  /** The name of the plugin, as in the Corefile. */
  readonly name: string;
  /** The handler and the hooks. */
  readonly instance: PluginInstance;
}

/**
 * Whether CoreDNS has a link for it in the chain of queries: also for a plugin that only filters queries, or collects
 * their metadata.
 */
export function isInChain(instance: PluginInstance): boolean {
  return (
    instance.handle !== undefined || instance.accepts !== undefined || instance.metadataZones !== undefined
  );
}
