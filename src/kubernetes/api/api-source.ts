/** The API of a live cluster as the source of a store: a list and watch for each of its kinds. */

import type { Logger } from "../../lib/logging/log.ts";
import type { GaugeFamily } from "../../lib/metrics/metric-families.ts";
import type { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import type { Clock } from "../../lib/time/clock.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";
import { SharedTurns } from "../../lib/time/turn-share.ts";
import type { MemoryRelease } from "../../runtime/memory-release.ts";
import type { Thrift } from "../../runtime/thrift.ts";
import { type EndpointSet, KINDS, type Kind, type ObjectOfKind } from "../objects/objects.ts";
import type { ReduceOptions } from "../objects/reduce.ts";
import { IMPORT_NAME_LABEL } from "../objects/reduce-endpoints.ts";
import type { ClusterStore } from "../store/store.ts";
import type { ClusterAccess } from "./access/access.ts";
import { type ApiStatusError, explainFailure, type RequestSubject } from "./access/api-error.ts";
import type { ProcessEnvironment } from "./access/proxy.ts";
import { ApiClient } from "./client/api-client.ts";
import { ApiMetrics } from "./client/api-metrics.ts";
import type { ListWatchTimings } from "./client/list-watch-timings.ts";
import { findNodePlace, type NodePlace } from "./client/node-place.ts";
import { freeingOctets } from "./client/received-octets.ts";
import type { RequestLimits } from "./client/request-limiter.ts";
import { asWanted, IMPORT_RESOURCES, RESOURCES, type ResourcesOf } from "./client/resource.ts";
import { APPLIED_IN_TURN, ListWatch } from "./watch/list-watch.ts";
import { ProgrammingLatency } from "./watch/programming-latency.ts";
import { readPod } from "./watch/read-pod.ts";
import { SharedPauses } from "./watch/shared-pauses.ts";
import { UnusableLog } from "./watch/unusable-log.ts";
import { WatchLog } from "./watch/watch-log.ts";

/** Milliseconds after which a silent API is a fault: it sends a bookmark about once a minute. */
const SILENCE = 180_000;

export interface ApiSourceOptions {
  readonly store: ClusterStore;
  /**
   * Where to put what is imported from other clusters: ServiceImports as its services, their slices as its endpoints. Its namespaces are
   * for others to fill. Nothing of that is asked for without it.
   */
  readonly imports?: ClusterStore | undefined;
  readonly access: ClusterAccess;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  readonly environment: ProcessEnvironment;
  readonly userAgent: string;
  readonly limits: RequestLimits;
  readonly reduce: ReduceOptions;
  /** Selector for services, endpoints and pods, as text; empty for all. */
  readonly labels: string;
  /** Selector for namespaces, as text; empty for all. */
  readonly namespaceLabels: string;
  /** The zone by which the metrics tell several clusters apart ({@link ApiSource.showAs}). */
  readonly zone: string;
  readonly timings?: Partial<ListWatchTimings>;
  /** Used while lists come in, and once after the first ones. */
  readonly memory?: MemoryRelease;
  /** Used while lists come in. */
  readonly thrift?: Pick<Thrift, "begin">;
}

/** A {@link ListWatch} of whatever kind. */
interface Watch {
  readonly store: ClusterStore;
  readonly kind: Kind;
  /** What is watched, in metrics and in words. */
  readonly title: string;
  readonly log: WatchLog;
  readonly loop: { readonly plural: string; start(): void; wake(): void; stop(): Promise<void> };
}

/** What makes one watch different from the next. */
interface WatchOptions<K extends Kind> {
  readonly resources: ResourcesOf<K>;
  readonly store: ClusterStore;
  readonly labelSelector: string;
  readonly title: string;
}

export class ApiSource {
  readonly #options: ApiSourceOptions;
  readonly #client: ApiClient;
  readonly #latency: ProgrammingLatency;
  readonly #watches: Watch[] = [];
  readonly #turns: SharedTurns;
  readonly #pauses: SharedPauses;
  readonly #unusable: UnusableLog;
  #arePagesSaid = false;
  readonly #ages: GaugeFamily;
  readonly #forgetCollector: () => void;
  #zone: string;
  #isStopped = false;

  constructor(options: ApiSourceOptions) {
    const { access, clock, environment, limits, memory, metrics, timings, userAgent, store } = options;
    this.#options = options;
    this.#unusable = new UnusableLog(options.log, clock);
    this.#turns = new SharedTurns(clock, APPLIED_IN_TURN);
    const apiMetrics = new ApiMetrics(metrics);
    this.#client = new ApiClient({
      ...{ access, clock, environment, limits, metrics: apiMetrics, userAgent, turns: this.#turns },
      ...(timings !== undefined && { timings }),
      ...(memory !== undefined && { freeOctets: freeingOctets(memory) }),
    });
    this.#pauses = new SharedPauses({
      ...{ client: this.#client, clock, random: options.random },
      areCredentialsCheap: access.credentials.kind !== "exec",
    });
    this.#latency = new ProgrammingLatency(metrics, store, clock);
    for (const kind of KINDS) if (store.kinds.has(kind)) this.#watchKind(kind);
    if (options.imports !== undefined) this.#watchImports(options.imports);
    this.#zone = options.zone;
    this.#ages = metrics.gauge({
      name: "portolan_kubernetes_data_age_seconds",
      help: "Time since the API was last heard of, by kind; absent before the first time.",
      labels: ["zone", "resource"],
    });
    this.#forgetCollector = metrics.onCollect(() => this.#exposeAges());
  }

  /** From now on the metrics call the cluster by this zone. */
  showAs(zone: string): void {
    if (zone === this.#zone) return;
    this.#hideAges();
    this.#zone = zone;
  }

  /** Begins to list and watch. {@link ClusterStore.whenSynced} tells when all has been listed. */
  start(): void {
    const { store, memory } = this.#options;
    void store.whenSynced().then(() => {
      if (!this.#isStopped) void memory?.allInTurns();
    });
    for (const { loop } of this.#watches) loop.start();
  }

  /** Ends everything; the store keeps what it holds. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#unusable.stop();
    this.#forgetCollector();
    this.#hideAges();
    this.#pauses.stop();
    await Promise.all(this.#watches.map(({ loop }) => loop.stop()));
    await this.#client.stop();
  }

  /** One pod as it is now, in JSON; `undefined` where there is none. @throws PodReadError, or the reason of the signal */
  readPod(namespace: string, name: string, signal: AbortSignal): Promise<unknown> {
    return readPod(this.#client, namespace, name, signal);
  }

  /** Where a node is; see {@link findNodePlace}. @throws the error of the API */
  nodePlace(name: string, signal: AbortSignal): Promise<NodePlace | undefined> {
    return findNodePlace(this.#client, signal, name);
  }

  /** The URLs of the API. */
  get servers(): readonly string[] {
    return this.#options.access.servers;
  }

  /** What is awaited until the stores are synced, and why it has not come: one text for each kind. */
  get awaited(): string[] {
    const missing = this.#watches.filter(({ store, kind }) => !store.isKindSynced(kind));
    return missing.map(({ title, log: { trouble } }) =>
      trouble === undefined ? title : `${title} (${trouble})`,
    );
  }

  /** The resources that the API does not deliver at present, each with the reason and the age of what is known. */
  faults(): { readonly subject: string; readonly reason: string }[] {
    return this.#watches.flatMap(({ store, kind, title, log }) => {
      const age = listedAge(store, kind);
      const { trouble } = log;
      if (age === undefined)
        return [{ subject: title, reason: `not listed yet${trouble === undefined ? "" : `: ${trouble}`}` }];
      const old = `the data is ${formatGoDuration(Math.floor(age / 1_000) * 1_000)} old`;
      if (trouble !== undefined) return [{ subject: title, reason: `${old}: ${trouble}` }];
      return age < SILENCE ? [] : [{ subject: title, reason: `${old}: the API sends nothing` }];
    });
  }

  /** How each resource stands and how old what is known of it is, a line each: `services: watching, age 3s`. */
  describe(): string[] {
    return this.#watches.map(({ store, kind, loop, log }) => {
      // Other resources tell by their names what they are.
      const isImported = store !== this.#options.store && kind === "endpoints";
      return `${isImported ? "imported " : ""}${loop.plural}: ${log.state}`;
    });
  }

  #watchKind<K extends Kind>(kind: K): void {
    const { store, labels, namespaceLabels } = this.#options;
    const labelSelector = kind === "namespaces" ? namespaceLabels : labels;
    this.#watch({ resources: RESOURCES[kind], store, labelSelector, title: kind });
  }

  #watchImports(store: ClusterStore): void {
    const { labels } = this.#options;
    const { services, endpoints } = IMPORT_RESOURCES;
    this.#watch({ resources: services, store, labelSelector: labels, title: "serviceimports" });
    const ofImports = labels === "" ? IMPORT_NAME_LABEL : `${labels},${IMPORT_NAME_LABEL}`;
    this.#watch({ resources: endpoints, store, labelSelector: ofImports, title: "imported endpoints" });
  }

  #watch<K extends Kind>(options: WatchOptions<K>): void {
    const { clock, log } = this.#options;
    const { store, title } = options;
    const { kind } = options.resources[0];
    const watchLog = new WatchLog({ log, clock, age: () => listedAge(store, kind) });
    const loop = this.#makeLoop(options, watchLog);
    this.#watches.push({ store, kind, title, log: watchLog, loop });
  }

  #makeLoop<K extends Kind>(
    { resources, store, labelSelector }: WatchOptions<K>,
    watchLog: WatchLog,
  ): ListWatch<K> {
    const { clock, random, reduce, thrift, timings } = this.#options;
    const { kind, plural } = resources[0];
    return new ListWatch<K>({
      resources: asWanted(resources, reduce),
      store,
      client: this.#client,
      clock,
      random,
      reduce,
      labelSelector,
      ...(timings !== undefined && { timings }),
      turns: this.#turns,
      pauses: this.#pauses,
      ...(thrift !== undefined && { listing: () => thrift.begin() }),
      observer: {
        failed: (error, subject, delayMs) => watchLog.failed(error, subject, delayMs),
        readsPages: (error, subject) => this.#reportPages(error, subject),
        watching: () => {
          const wasLost = watchLog.trouble !== undefined;
          watchLog.watching(plural);
          if (!wasLost) return;
          // The API is there again.
          for (const other of this.#watches) if (other.log !== watchLog) other.loop.wake();
        },
        unusable: (identity, problem) => this.#unusable.report(identity, problem),
        changed: (object, changedAt) => {
          if (store === this.#options.store && isEndpointSet(kind, object))
            this.#latency.record(object, changedAt);
        },
      },
    });
  }

  /** All kinds are refused in the same way, and at each start. */
  #reportPages(error: ApiStatusError, subject: RequestSubject): void {
    if (this.#arePagesSaid) return;
    this.#arePagesSaid = true;
    const words = explainFailure(error, subject);
    this.#options.log.info(
      `reading lists in pages, as the API server does not begin watches with a list: ${words}`,
    );
  }

  #exposeAges(): void {
    for (const { store, kind, title } of this.#watches) {
      const age = listedAge(store, kind);
      if (age !== undefined) this.#ages.slot(this.#zone, title).set(age / 1000);
    }
  }

  #hideAges(): void {
    for (const { title } of this.#watches) this.#ages.remove(this.#zone, title);
  }
}

/** Milliseconds since the API was last heard of; what a snapshot told does not count. */
function listedAge(store: ClusterStore, kind: Kind): number | undefined {
  return store.isKindSynced(kind) ? store.age(kind) : undefined;
}

function isEndpointSet(kind: Kind, object: ObjectOfKind[Kind]): object is EndpointSet {
  return kind === "endpoints" && "groups" in object;
}
