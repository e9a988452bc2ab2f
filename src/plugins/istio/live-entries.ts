import type { ClusterAccess } from "../../kubernetes/api/access.ts";
import { ApiClient } from "../../kubernetes/api/api-client.ts";
import { ApiMetrics } from "../../kubernetes/api/api-metrics.ts";
import { ListWatch } from "../../kubernetes/api/list-watch.ts";
import { SERVICE_ENTRY_RESOURCES } from "../../kubernetes/api/resource.ts";
import { WatchLog } from "../../kubernetes/api/watch-log.ts";
import type { ReduceOptions } from "../../kubernetes/objects/reduce.ts";
import type { ServiceEntryTable } from "../../kubernetes/store/service-entry-table.ts";
import type { Site } from "../../plugin/index.ts";
import type { EntrySource } from "./entry-source.ts";

/** Entries that cannot be used are named once, and no more of them than this. */
const MAX_UNUSABLE = 1000;

/** The ServiceEntries of a live cluster, listed and watched. */
export class LiveEntries implements EntrySource {
  readonly #client: ApiClient;
  readonly #loop: ListWatch<"serviceentries">;
  readonly #watchLog: WatchLog;
  readonly #unusable = new Set<string>();

  constructor(
    table: ServiceEntryTable,
    access: ClusterAccess,
    reduce: ReduceOptions,
    site: Pick<Site, "clock" | "random" | "log" | "metrics" | "machine" | "version">,
  ) {
    const { clock, log, machine, metrics, random, version } = site;
    const client = new ApiClient({
      access,
      clock,
      environment: machine.environment,
      limits: { qps: 0, burst: 0, maxInflight: 0 },
      metrics: new ApiMetrics(metrics),
      userAgent: `Portolan/${version} (${process.platform}/${process.arch})`,
    });
    const watchLog = new WatchLog({ log, clock, age: () => table.age });
    this.#client = client;
    this.#watchLog = watchLog;
    this.#loop = new ListWatch({
      resources: SERVICE_ENTRY_RESOURCES,
      store: table,
      client,
      clock,
      random: () => random.fraction(),
      reduce,
      labelSelector: "",
      observer: {
        failed: (error, subject, delayMs) => watchLog.failed(error, subject, delayMs),
        watching: () => watchLog.watching("serviceentries"),
        unusable: (identity, problem) => {
          const line = `${identity} cannot be used: ${problem}`;
          if (this.#unusable.has(line)) return;
          if (this.#unusable.size >= MAX_UNUSABLE) this.#unusable.clear();
          this.#unusable.add(line);
          log.warning(line);
        },
        changed: () => undefined,
      },
    });
  }

  async start(): Promise<void> {
    this.#loop.start();
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
    await this.#client.stop();
  }

  describe(): string {
    return `service entries: ${this.#watchLog.state}`;
  }
}
