import type { ClusterAccess } from "../../kubernetes/api/access/access.ts";
import { explainFailure } from "../../kubernetes/api/access/api-error.ts";
import { ApiClient } from "../../kubernetes/api/client/api-client.ts";
import { ApiMetrics } from "../../kubernetes/api/client/api-metrics.ts";
import { SERVICE_ENTRY_RESOURCES } from "../../kubernetes/api/client/resource.ts";
import { ListWatch } from "../../kubernetes/api/watch/list-watch.ts";
import { UnusableLog } from "../../kubernetes/api/watch/unusable-log.ts";
import { WatchLog } from "../../kubernetes/api/watch/watch-log.ts";
import type { ReduceOptions } from "../../kubernetes/objects/reduce.ts";
import type { ServiceEntryTable } from "../../kubernetes/store/mesh/service-entry-table.ts";
import type { Site } from "../../plugin/index.ts";
import type { EntrySource } from "./entry-source.ts";

/** The ServiceEntries of a live cluster, listed and watched. */
export class LiveEntries implements EntrySource {
  readonly #client: ApiClient;
  readonly #loop: ListWatch<"serviceentries">;
  readonly #watchLog: WatchLog;
  readonly #unusable: UnusableLog;

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
    this.#unusable = new UnusableLog(log, clock);
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
        readsPages: (error, subject) =>
          log.info(
            `reading service entries in pages, as the API server does not begin watches with a list: ${explainFailure(error, subject)}`,
          ),
        unusable: (identity, problem) => this.#unusable.report(identity, problem),
        changed: () => undefined,
      },
    });
  }

  async start(): Promise<void> {
    this.#loop.start();
  }

  async stop(): Promise<void> {
    this.#unusable.stop();
    await this.#loop.stop();
    await this.#client.stop();
  }

  describe(): string {
    return `service entries: ${this.#watchLog.state}`;
  }
}
