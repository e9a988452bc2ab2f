/**
 * A cluster that is watched: its stores, and the source that fills them. It belongs to no configuration. A reload that wants the same of the
 * same cluster takes it over as it runs: nothing is listed again, there is never a second copy, and a reload that is rolled back has
 * changed nothing.
 *
 * What lives here outlives the configuration that made it, so it must hold on to nothing of that: see {@link lastingSite}.
 */
import type { ApiSource } from "../../kubernetes/api/api-source.ts";
import type { Kind } from "../../kubernetes/objects/objects.ts";
import type { ReduceOptions } from "../../kubernetes/objects/reduce.ts";
import { SharedValues } from "../../kubernetes/objects/shared-values.ts";
import { StoreReplica } from "../../kubernetes/store/sharing/replication.ts";
import { ClusterStore } from "../../kubernetes/store/store.ts";
import type { GaugeFamily } from "../../lib/metrics/metric-families.ts";
import { type MetricsRegistry, ServiceKey, type Site } from "../../plugin/index.ts";
import { loadMemoryRelease } from "../../runtime/memory-release.ts";
import { residentMemory } from "../../runtime/resident-memory.ts";
import { MemoryNotice } from "./memory-notice.ts";

export interface ClusterStores {
  readonly store: ClusterStore;
  /** What is imported from other clusters. */
  readonly imports?: ClusterStore | undefined;
}

/** What a source may use of the server: everything that does not end with a configuration. */
export type LastingSite = Pick<Site, "clock" | "random" | "log" | "metrics" | "machine" | "version">;

/** A site without its block: whoever keeps a `Site` keeps all plugins of the configuration that it was made for. */
export function lastingSite({ clock, random, log, metrics, machine, version }: Site): LastingSite {
  return { clock, random, log, metrics, machine, version };
}

/** Fills the stores of a cluster. */
export interface ClusterSource {
  /** From where, and by which means. A source of the same origin need not be replaced. */
  readonly origin: string;
  /** The API, if that is what it is. */
  readonly live?: ApiSource | undefined;
  /** When the snapshot was written that answers began with; undefined where there was none. */
  readonly loadedFrom?: string | undefined;
  /**
   * @param isFresh whether the stores hold nothing yet
   * @throws SetupError where it cannot begin
   */
  start(isFresh: boolean): Promise<void>;
  /** A reload wants to keep it. @throws SetupError where it could not begin now */
  verify?(): Promise<void>;
  /** By which zone the metrics tell this cluster from others. */
  showAs?(zone: string): void;
  stop(): Promise<void>;
}

export interface WatchedClusterOptions {
  readonly site: LastingSite;
  readonly kinds: readonly Kind[];
  /** Whether a second store is needed, for what is imported from other clusters. */
  readonly imports: boolean;
  /** Whether the stores follow those of another data plane. */
  readonly isReplica: boolean;
  readonly reduce: Omit<ReduceOptions, "shared">;
}

/** Imports are few, so that their endpoints are kept whatever becomes of the cluster's own. */
const IMPORT_KINDS: readonly Kind[] = ["namespaces", "services", "endpoints"];

export class WatchedCluster implements ClusterStores {
  readonly store: ClusterStore;
  readonly imports: ClusterStore | undefined;
  readonly replicas:
    | { readonly cluster: StoreReplica; readonly imports: StoreReplica | undefined }
    | undefined;
  readonly reduce: ReduceOptions;
  /** The cluster, and all that decides what is kept of its objects. Of use to whoever wants the same; undefined until that is known. */
  content: string | undefined;
  #source: ClusterSource | undefined;
  /** What the configuration to come fills the stores from, beside the source of the one in force. */
  #candidate: ClusterSource | undefined;
  #holders = 0;
  readonly #memory: GaugeFamily;
  readonly #metrics: MetricsRegistry;
  readonly #notice: MemoryNotice | undefined;
  #endCollecting: (() => void) | undefined;
  /** By which metrics tell it from other clusters. */
  #zone: string | undefined;
  /** Sources begin and end one after the other. */
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
      help: "Memory that Services, endpoints and pods of the cluster have taken.",
      acrossThreads: "sum",
      labels: ["zone"],
    });
    this.#metrics = metrics;
    this.store = make(kinds);
    this.imports = imports ? make(IMPORT_KINDS) : undefined;
    const { memoryLimit: limit } = machine;
    const stores = this.imports === undefined ? [this.store] : [this.store, this.imports];
    // One thread speaks for all.
    if (limit !== undefined && !isReplica)
      this.#notice = new MemoryNotice({ limit, own: () => residentMemory().own, stores, clock, log });
    if (this.imports !== undefined) mirrorNamespaces(this.store, this.imports);
    // Memory of the other thread's that has moved since is held until it is collected here, too.
    if (isReplica) void this.whenSynced().then(async () => (await loadMemoryRelease()).allInTurns());
    this.replicas = isReplica
      ? {
          cluster: new StoreReplica(this.store),
          imports: this.imports && new StoreReplica(this.imports),
        }
      : undefined;
  }

  /** What fills the stores; undefined in a data plane that follows another, and before the start. */
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

  /** A configuration shows this cluster, and is told of memory that runs short, until it calls {@link release}. */
  hold(): void {
    this.#holders++;
    this.#endCollecting ??= this.#metrics.onCollect(() => this.#exposeMemory());
    this.#notice?.start();
  }

  /** A configuration came into force that calls it by this zone. */
  showAs(zone: string): void {
    if (this.#zone !== undefined && this.#zone !== zone) this.#memory.remove(this.#zone);
    this.#zone = zone;
    this.#source?.showAs?.(zone);
  }

  /**
   * The last to let go ends the source.
   * @param source the one that this configuration has begun, if any: it ends now if it never came into force
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
   * Has a source fill the stores. Where there is one already, both do until {@link settle}: they say the same, and should the reload be
   * rolled back, nothing has to begin anew.
   * @throws SetupError where it cannot begin
   */
  async fillFrom(source: ClusterSource): Promise<void> {
    await this.#inTurn(async () => {
      const isFirst = this.#source === undefined;
      if (isFirst) this.#source = source;
      else this.#candidate = source;
      await source.start(isFirst);
    });
  }

  /** The configuration that began the last source is in force: it is the only one from now on. */
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

/** Offered to the configuration that comes next. */
export const WATCHED_CLUSTER: ServiceKey<WatchedCluster> = new ServiceKey("watched cluster");

/** A namespace is the same in all clusters of a set, so those of this one count. */
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
