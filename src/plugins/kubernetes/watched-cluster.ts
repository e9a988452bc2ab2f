/**
 * A watched cluster: its stores, and the source that fills them. It belongs to no configuration. A reload with the
 * same options takes over the running cluster: nothing is listed again, there is never a second copy, and a reload
 * that is rolled back has changed nothing. Objects of this class outlive the configuration that made them, so they
 * must not refer to it: see {@link lastingSite}.
 */
import type { ApiSource } from "../../kubernetes/api/api-source.ts";
import type { Kind } from "../../kubernetes/objects/objects.ts";
import type { ReduceOptions } from "../../kubernetes/objects/reduce.ts";
import { SharedValues } from "../../kubernetes/objects/shared-values.ts";
import { StoreReplica } from "../../kubernetes/store/sharing/replication.ts";
import { ClusterStore } from "../../kubernetes/store/store.ts";
import type { GaugeFamily } from "../../lib/metrics/metric-families.ts";
import type { PluginFault } from "../../plugin/contract/plugin-instance.ts";
import { type MetricsRegistry, ServiceKey, type Site } from "../../plugin/index.ts";
import { loadMemoryRelease } from "../../runtime/memory-release.ts";
import { residentMemory } from "../../runtime/resident-memory.ts";
import { MemoryNotice } from "./memory-notice.ts";

export interface ClusterStores {
  readonly store: ClusterStore;
  /** Services imported from other clusters. */
  readonly imports?: ClusterStore | undefined;
}

/** The parts of the server that a source may use: everything that does not end with a configuration. */
export type LastingSite = Pick<Site, "clock" | "random" | "log" | "metrics" | "machine" | "version">;

/** A site without its block: a reference to a `Site` retains all plugins of its configuration. */
export function lastingSite({ clock, random, log, metrics, machine, version }: Site): LastingSite {
  return { clock, random, log, metrics, machine, version };
}

/** Fills the stores of a cluster. */
export interface ClusterSource {
  /** Identifies where the data comes from, and how. A source of the same origin need not be replaced. */
  readonly origin: string;
  /** The API, if the source is one. */
  readonly live?: ApiSource | undefined;
  /** When the snapshot was written that the first answers came from; undefined without a snapshot. */
  readonly loadedFrom?: string | undefined;
  /** What cannot be read at present. */
  faults?(): readonly PluginFault[];
  /** @param isFresh whether the stores are still empty @throws SetupError if the source cannot start */
  start(isFresh: boolean): Promise<void>;
  /** Called when a reload wants to keep the source. @throws SetupError if it could not start now */
  verify?(): Promise<void>;
  /** Sets the zone that identifies this cluster in metrics. */
  showAs?(zone: string): void;
  stop(): Promise<void>;
}

export interface WatchedClusterOptions {
  readonly site: LastingSite;
  readonly kinds: readonly Kind[];
  /** Whether a second store is needed for imports from other clusters. */
  readonly imports: boolean;
  /** Whether the stores are replicas of those of another data plane. */
  readonly isReplica: boolean;
  readonly reduce: Omit<ReduceOptions, "shared">;
}

/** Imports are few, so their endpoints are stored whatever the options say about the cluster's own. */
const IMPORT_KINDS: readonly Kind[] = ["namespaces", "services", "endpoints"];

export class WatchedCluster implements ClusterStores {
  readonly store: ClusterStore;
  readonly imports: ClusterStore | undefined;
  readonly replicas:
    | { readonly cluster: StoreReplica; readonly imports: StoreReplica | undefined }
    | undefined;
  readonly reduce: ReduceOptions;
  /**
   * Identifies the cluster and everything that decides what is stored of its objects. A configuration with the same
   * content can take it over; undefined until it is known.
   */
  content: string | undefined;
  #source: ClusterSource | undefined;
  /** The source of the next configuration, which fills the stores beside the source of the one in force. */
  #candidate: ClusterSource | undefined;
  #holders = 0;
  readonly #memory: GaugeFamily;
  readonly #metrics: MetricsRegistry;
  readonly #notice: MemoryNotice | undefined;
  #endCollecting: (() => void) | undefined;
  /** The zone that identifies the cluster in metrics. */
  #zone: string | undefined;
  /** Sources start and stop one after the other. */
  #turn: Promise<void> = Promise.resolve();

  constructor({
    site: { clock, random, log, machine, metrics },
    kinds,
    imports,
    isReplica,
    reduce,
  }: WatchedClusterOptions) {
    this.reduce = { ...reduce, shared: new SharedValues() };
    const make = (of: readonly Kind[]) =>
      new ClusterStore({ clock, kinds: of, replica: isReplica, identity: random.unpredictable() });
    this.#memory = metrics.gauge({
      name: "portolan_memory_cluster_bytes",
      help: "Memory used by Services, endpoints and pods of the cluster, in bytes.",
      acrossThreads: "sum",
      labels: ["zone"],
    });
    this.#metrics = metrics;
    this.store = make(kinds);
    this.imports = imports ? make(IMPORT_KINDS) : undefined;
    const { memoryLimit: limit } = machine;
    const stores = this.imports === undefined ? [this.store] : [this.store, this.imports];
    // One thread reports for all.
    if (limit !== undefined && !isReplica)
      this.#notice = new MemoryNotice({ limit, own: () => residentMemory().own, stores, clock, log });
    if (this.imports !== undefined) mirrorNamespaces(this.store, this.imports);
    // Memory of the leader's that has moved since is retained until it is collected here, too.
    if (isReplica) void this.whenSynced().then(async () => (await loadMemoryRelease()).allInTurns());
    this.replicas = isReplica
      ? {
          cluster: new StoreReplica(this.store),
          imports: this.imports && new StoreReplica(this.imports),
        }
      : undefined;
  }

  /** The source of the stores; undefined in a data plane that follows another one, and before the start. */
  get source(): ClusterSource | undefined {
    return this.#source;
  }

  get isSynced(): boolean {
    return this.store.isSynced && this.imports?.isSynced !== false;
  }

  /** Resolves when everything has been listed once. */
  async whenSynced(): Promise<void> {
    await Promise.all([this.store.whenSynced(), this.imports?.whenSynced()]);
  }

  /**
   * Registers a configuration that serves this cluster and gets its memory warnings, until it calls {@link release}.
   */
  hold(): void {
    this.#holders++;
    this.#endCollecting ??= this.#metrics.onCollect(() => this.#exposeMemory());
    this.#notice?.start();
  }

  /** Called when a configuration that identifies the cluster by this zone comes into force. */
  showAs(zone: string): void {
    if (this.#zone !== undefined && this.#zone !== zone) this.#memory.remove(this.#zone);
    this.#zone = zone;
    this.#source?.showAs?.(zone);
  }

  /**
   * Unregisters a configuration; the last one stops the source. @param source the source that this configuration
   * started, if any: it stops now if the configuration never came into force
   */
  async release(source: ClusterSource | undefined): Promise<void> {
    this.#holders--;
    await this.#inTurn(async () => {
      if (this.#candidate !== undefined && (source === this.#candidate || this.#holders === 0)) {
        await this.#candidate.stop();
        this.#candidate = undefined;
      }
      if (this.#holders > 0) return;
      this.#endCollecting?.();
      this.#endCollecting = undefined;
      this.#notice?.stop();
      if (this.#zone !== undefined) this.#memory.remove(this.#zone);
      await this.#source?.stop();
      this.#source = undefined;
    });
  }

  /**
   * Starts a source. If there is one already, both fill the stores until {@link settle}: their data is the same, and
   * if the reload is rolled back nothing has to start again. @throws SetupError if the source cannot start
   */
  async fillFrom(source: ClusterSource): Promise<void> {
    await this.#inTurn(async () => {
      const isFirst = this.#source === undefined;
      if (isFirst) this.#source = source;
      else this.#candidate = source;
      await source.start(isFirst);
    });
  }

  /** Keeps only the source that was started last, whose configuration is in force. */
  async settle(): Promise<void> {
    await this.#inTurn(async () => {
      if (this.#candidate === undefined) return;
      const former = this.#source;
      this.#source = this.#candidate;
      this.#candidate = undefined;
      await former?.stop();
    });
  }

  #exposeMemory(): void {
    const { store, imports } = this;
    if (this.#zone !== undefined) this.#memory.slot(this.#zone).set(store.octets + (imports?.octets ?? 0));
  }

  #inTurn(task: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(task);
    this.#turn = done.catch(() => undefined);
    return done;
  }
}

/** Offered to the next configuration. */
export const WATCHED_CLUSTER: ServiceKey<WatchedCluster> = new ServiceKey("watched cluster");

/** A namespace is the same in all clusters of a set, so the namespaces of this cluster count. */
function mirrorNamespaces(from: ClusterStore, to: ClusterStore): void {
  from.observe({
    put: (kind, object) => {
      if (kind === "namespaces") to.put("namespaces", { namespace: "", name: object.name });
    },
    delete: (kind, identity) => {
      if (kind === "namespaces") to.delete(kind, identity);
    },
    listed: (kind) => {
      if (kind === "namespaces") to.markListed(kind);
    },
    confirmed: (kind) => {
      if (kind === "namespaces") to.confirm(kind);
    },
  });
}
