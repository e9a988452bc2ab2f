/** An API and the source that watches it, in one process: for tests of the source alone. */
import { type ClusterAccess, endpointAccess } from "../../../src/kubernetes/api/access/access.ts";
import { ApiSource, type ApiSourceOptions } from "../../../src/kubernetes/api/api-source.ts";
import type { Kind } from "../../../src/kubernetes/objects/objects.ts";
import { SharedValues } from "../../../src/kubernetes/objects/shared-values.ts";
import { ClusterStore } from "../../../src/kubernetes/store/store.ts";
import { MemoryLog } from "../../../src/lib/logging/log.ts";
import { MetricsRegistry } from "../../../src/lib/metrics/metrics.ts";
import { type Clock, FakeClock, SystemClock } from "../../../src/lib/time/clock.ts";
import { ApiSimulator, type ApiSimulatorOptions } from "./api-simulator.ts";

export interface SourceTestOptions {
  readonly simulator?: ApiSimulatorOptions;
  readonly kinds?: readonly Kind[];
  /** Default the machine's own. */
  readonly clock?: Clock;
  readonly access?: (api: ApiSimulator) => ClusterAccess;
  readonly source?: Partial<ApiSourceOptions>;
}

/** Longer than anything takes here. */
const PATIENCE_MS = 20_000;

export class SourceTest implements AsyncDisposable {
  readonly api: ApiSimulator;
  readonly store: ClusterStore;
  readonly source: ApiSource;
  readonly log = new MemoryLog();
  readonly metrics = new MetricsRegistry({ processMetrics: false });
  readonly #clock: Clock;

  private constructor(api: ApiSimulator, options: SourceTestOptions) {
    this.api = api;
    this.#clock = options.clock ?? new SystemClock();
    this.store = new ClusterStore({
      clock: this.#clock,
      kinds: options.kinds ?? ["namespaces", "services", "endpoints"],
    });
    this.source = new ApiSource({
      store: this.store,
      access: options.access?.(api) ?? endpointAccess([api.url], undefined, {}),
      clock: this.#clock,
      random: () => 0.5,
      log: this.log,
      metrics: this.metrics,
      environment: {},
      userAgent: "test",
      limits: { qps: 1000, burst: 1000, maxInflight: 0 },
      reduce: { shared: new SharedValues() },
      labels: "",
      namespaceLabels: "",
      zone: "cluster.local.",
      ...options.source,
    });
  }

  /** Starts both; the source begins at once. */
  static async start(options: SourceTestOptions = {}): Promise<SourceTest> {
    const test = await SourceTest.prepare(options);
    test.source.start();
    return test;
  }

  /** As {@link start}, but the source waits for its `start`. */
  static async prepare(options: SourceTestOptions = {}): Promise<SourceTest> {
    return new SourceTest(await ApiSimulator.start(options.simulator), options);
  }

  /** As {@link prepare}, over an API that runs. */
  static over(api: ApiSimulator, options: SourceTestOptions = {}): SourceTest {
    return new SourceTest(api, options);
  }

  /** Waits until something holds. A clock that stands still is moved on meanwhile. */
  async until(condition: () => boolean): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS;
    while (!condition()) {
      if (Date.now() > deadline) throw new Error(`it never came to pass; log:\n${this.log.lines.join("\n")}`);
      if (this.#clock instanceof FakeClock) this.#clock.advance(10);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  synced(): Promise<void> {
    return this.until(() => this.store.isSynced);
  }

  /** Every watch is listed and runs. */
  async watching(): Promise<void> {
    await this.synced();
    await this.until(() => this.api.openWatches === this.store.kinds.size);
  }

  /** The services of the store, as `namespace/name`, in order. */
  get services(): string[] {
    return Array.from(this.store.services.services(), ({ namespace, name }) => `${namespace}/${name}`).sort();
  }

  putService(name: string, clusterIP = "10.96.0.1", namespace = "default"): void {
    this.api.put("services", {
      metadata: { name, namespace },
      spec: { clusterIP, clusterIPs: [clusterIP], ports: [{ name: "http", port: 80, protocol: "TCP" }] },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.source.stop();
    await this.api.close();
  }
}
