/** The API of a live cluster as the source of a store: a list and watch for each of its kinds. */
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/log.ts";
import type { MetricsRegistry } from "../../lib/metrics.ts";
import { type EndpointSet, KINDS, type Kind, type ObjectOfKind } from "../objects.ts";
import type { ReduceOptions } from "../reduce.ts";
import type { ClusterStore } from "../store.ts";
import type { ClusterAccess } from "./access.ts";
import { ApiClient } from "./api-client.ts";
import { ApiMetrics } from "./api-metrics.ts";
import { ListWatch, type ListWatchTimings } from "./list-watch.ts";
import { ProgrammingLatency } from "./programming-latency.ts";
import type { Environment } from "./proxy.ts";
import { readPod } from "./read-pod.ts";
import type { RequestLimits } from "./request-limiter.ts";
import { RESOURCES } from "./resource.ts";
import { WatchLog } from "./watch-log.ts";

export interface ApiSourceOptions {
  readonly store: ClusterStore;
  readonly access: ClusterAccess;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  readonly environment: Environment;
  readonly userAgent: string;
  readonly limits: RequestLimits;
  readonly reduce: ReduceOptions;
  /** Selector for services, endpoints and pods, as text; empty for all. */
  readonly labels: string;
  /** Selector for namespaces, as text; empty for all. */
  readonly namespaceLabels: string;
  /** The zone by which the metrics tell several clusters apart. */
  readonly zone: string;
  readonly timings?: Partial<ListWatchTimings>;
}

/** Objects that cannot be used are named once, and no more of them than this. */
const MAX_UNUSABLE = 1000;

/** A {@link ListWatch} of whatever kind. */
interface Watch {
  readonly kind: Kind;
  readonly plural: string;
  start(): void;
  wake(): void;
  stop(): Promise<void>;
}

export class ApiSource {
  readonly #options: ApiSourceOptions;
  readonly #client: ApiClient;
  readonly #latency: ProgrammingLatency;
  readonly #watches: Watch[] = [];
  readonly #logs = new Map<Kind, WatchLog>();
  readonly #unusable = new Set<string>();
  readonly #forgetCollector: () => void;

  constructor(options: ApiSourceOptions) {
    const { access, clock, environment, limits, metrics, userAgent, store } = options;
    this.#options = options;
    const apiMetrics = new ApiMetrics(metrics);
    this.#client = new ApiClient({ access, clock, environment, limits, metrics: apiMetrics, userAgent });
    this.#latency = new ProgrammingLatency(metrics, store, clock);
    for (const kind of KINDS) if (store.kinds.has(kind)) this.#watches.push(this.#makeWatch(kind));
    this.#forgetCollector = this.#exposeAge();
  }

  /** Begins to list and watch. {@link ClusterStore.whenSynced} tells when all has been listed. */
  start(): void {
    for (const watch of this.#watches) watch.start();
  }

  /** Ends everything; the store keeps what it holds. */
  async stop(): Promise<void> {
    this.#forgetCollector();
    await Promise.all(this.#watches.map((watch) => watch.stop()));
    await this.#client.stop();
  }

  /** One pod as it is now, in JSON; `undefined` where there is none. @throws PodReadError, or the reason of the signal */
  readPod(namespace: string, name: string, signal: AbortSignal): Promise<unknown> {
    return readPod(this.#client, namespace, name, signal);
  }

  /** What is awaited until the store is synced, and why it has not come: one text for each kind. */
  get awaited(): string[] {
    return this.#options.store.missingKinds.map((kind) => {
      const trouble = this.#logs.get(kind)?.trouble;
      return trouble === undefined ? kind : `${kind} (${trouble})`;
    });
  }

  /** How each resource stands and how old what is known of it is, a line each: `services: watching, age 3s`. */
  describe(): string[] {
    return this.#watches.map(({ kind, plural }) => `${plural}: ${this.#logs.get(kind)?.state}`);
  }

  #makeWatch<K extends Kind>(kind: K): ListWatch<K> {
    const { store, clock, random, log, reduce, labels, namespaceLabels, timings } = this.#options;
    const resources = RESOURCES[kind];
    const watchLog = new WatchLog({ log, clock, age: () => listedAge(store, kind) });
    this.#logs.set(kind, watchLog);
    return new ListWatch({
      resources,
      store,
      client: this.#client,
      clock,
      random,
      reduce,
      labelSelector: kind === "namespaces" ? namespaceLabels : labels,
      ...(timings !== undefined && { timings }),
      observer: {
        failed: (error, subject, delayMs) => watchLog.failed(error, subject, delayMs),
        watching: () => {
          watchLog.watching(resources[0].plural);
          for (const other of this.#watches) if (other.kind !== kind) other.wake();
        },
        unusable: (identity, problem) => this.#reportUnusable(identity, problem),
        changed: (object, value) => {
          if (isEndpointSet(kind, object)) this.#latency.record(object, value);
        },
      },
    });
  }

  #reportUnusable(identity: string, problem: string): void {
    const line = `${identity} cannot be used: ${problem}`;
    if (this.#unusable.has(line)) return;
    if (this.#unusable.size >= MAX_UNUSABLE) this.#unusable.clear();
    this.#unusable.add(line);
    this.#options.log.warning(line);
  }

  #exposeAge(): () => void {
    const { metrics, store, zone } = this.#options;
    const ages = metrics.gauge({
      name: "portolan_kubernetes_data_age_seconds",
      help: "Time since the API was last heard of, by kind; absent before the first time.",
      labels: ["zone", "resource"],
    });
    const forget = metrics.onCollect(() => {
      for (const kind of store.kinds) {
        const age = listedAge(store, kind);
        if (age !== undefined) ages.slot(zone, kind).set(age / 1000);
      }
    });
    return () => {
      forget();
      for (const kind of store.kinds) ages.remove(zone, kind);
    };
  }
}

/** Milliseconds since the API was last heard of; what a snapshot told does not count. */
function listedAge(store: ClusterStore, kind: Kind): number | undefined {
  return store.isKindSynced(kind) ? store.age(kind) : undefined;
}

function isEndpointSet(kind: Kind, object: ObjectOfKind[Kind]): object is EndpointSet {
  return kind === "endpoints" && "groups" in object;
}
