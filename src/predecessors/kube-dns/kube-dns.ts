/** kube-dns: answers for a cluster's names, and forwards all others (docs/spec/kube-dns.md#kube-dns). */

import type { Name } from "../../dns/name.ts";
import type { ClusterView } from "../../kubernetes/answers/cluster-view.ts";
import type { NodePlace } from "../../kubernetes/api/client/node-place.ts";
import { readTextFile } from "../../lib/files/bounded-file.ts";
import type { ProcessLog } from "../../lib/logging/log.ts";
import { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import type { Random } from "../../plugin/contract/site.ts";
import { parseNameservers } from "../../upstream/config/resolv-conf.ts";
import { CorefileServer } from "../corefile-server.ts";
import { HttpPages, type Page } from "../http-pages.ts";
import { forwardAddress, type HostResolver, resolveServers } from "../server-addresses.ts";
import { cachePage } from "./cache-page.ts";
import { EMPTY_KUBE_DNS_CONFIG, type KubeDnsConfig } from "./config-map.ts";
import type { ConfigSource } from "./config-updates.ts";
import { Federation } from "./federation.ts";
import { frontPlugin } from "./front-plugin.ts";
import { kubeDnsCorefile } from "./kube-dns-corefile.ts";
import { SkydnsMetrics } from "./skydns-metrics.ts";

export interface KubeDnsOptions {
  readonly domain: Name;
  readonly bind: string;
  readonly port: number;
  readonly healthPort: number;
  /** Lines of the directive `kubernetes` that select the cluster. */
  readonly cluster: readonly string[];
  readonly profiling: boolean;
  /** Milliseconds until the cluster must be listed. */
  readonly initialSyncTimeout: number;
  /** Where SkyDNS's metrics are served; absent if metrics are off. */
  readonly metrics:
    | { readonly host: string; readonly port: number; readonly path: string; readonly prefix: string }
    | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: ProcessLog;
  readonly resolveHost: HostResolver;
  readonly findPlace: () => Promise<NodePlace | undefined>;
  /** Path of the system's resolv.conf. */
  readonly resolvConf: string;
  /** Called on a fatal error. */
  readonly failed: (reason: string) => void;
}

/** Interval of the log lines about a pending start. */
const REMINDER_MS = 500;
/** Milliseconds that the start waits for the first configuration. */
const FIRST_CONFIG_MS = 2_000;

export class KubeDns {
  readonly #options: KubeDnsOptions;
  readonly #server: CorefileServer;
  readonly #registry = new MetricsRegistry();
  readonly #pages: HttpPages;
  readonly #metricsPages: HttpPages;
  #source: ConfigSource | undefined;
  #config: KubeDnsConfig = EMPTY_KUBE_DNS_CONFIG;
  #view: ClusterView | undefined;
  #isSynced = false;
  #reminder: Timer | undefined;
  #isStopped = false;

  constructor(options: KubeDnsOptions) {
    const { domain, clock, metrics, findPlace } = options;
    this.#options = options;
    this.#pages = new HttpPages((path) => this.#page(path));
    this.#metricsPages = new HttpPages((path) => this.#metricsPage(path));
    const federation = new Federation({
      domain,
      clock,
      findPlace,
      federations: () => this.#config.federations,
      store: () => this.#view?.store,
    });
    const front = frontPlugin({
      domain,
      clock,
      federation,
      metrics: metrics && new SkydnsMetrics(this.#registry, metrics.prefix),
      isSynced: () => this.#isSynced,
      found: (view) => {
        this.#view = view;
      },
    });
    this.#server = new CorefileServer({
      ...options,
      name: "kube-dns",
      plugins: [front],
      metrics: this.#registry,
      onFatal: options.failed,
    });
  }

  /** The server answers when this returns; for cluster names, when the cluster has been listed. */
  async start(source: ConfigSource): Promise<void> {
    const { clock, metrics } = this.#options;
    this.#source = source;
    const late = Promise.withResolvers<void>();
    const timer = clock.after(FIRST_CONFIG_MS, late.resolve);
    await Promise.race([source.start(), late.promise]);
    timer.cancel();
    if (this.#server.corefile === "") await this.take(this.#config);
    if (metrics !== undefined) await this.#metricsPages.listen(metrics.host, metrics.port);
    this.#awaitCluster();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#reminder?.cancel();
    await this.#source?.stop();
    await Promise.all([this.#pages.close(), this.#metricsPages.close()]);
    await this.#server.stop();
  }

  /** Applies a configuration. @throws if it cannot be applied; the configuration in force stays */
  async take(config: KubeDnsConfig): Promise<void> {
    const stubDomains = new Map<string, readonly string[]>();
    for (const [domain, servers] of config.stubDomains)
      stubDomains.set(domain, await this.#addresses(servers, `stub domain ${domain}`));
    const named = await this.#addresses(config.upstreamNameservers, "upstream name servers");
    const upstreams = named.length > 0 ? named : await this.#systemServers();
    if (this.#isStopped) return;
    await this.#server.serve(kubeDnsCorefile({ ...this.#options, upstreams, stubDomains }));
    this.#config = config;
  }

  #addresses(servers: readonly string[], what: string): Promise<string[]> {
    const { resolveHost, log } = this.#options;
    return resolveServers(servers, resolveHost, (host, reason) =>
      log.warning(`${what}: ${host} has no address and is ignored: ${reason}`),
    );
  }

  async #systemServers(): Promise<string[]> {
    const { resolvConf, log } = this.#options;
    try {
      const servers = parseNameservers(await readTextFile(resolvConf));
      return servers.map(({ host }) => forwardAddress({ address: host, port: "" }));
    } catch (error) {
      log.warning(`no upstream for other names: ${messageOf(error)}`);
      return [];
    }
  }

  /** Logs what the start waits for, and opens the pages when it is done: clients take a refused connection for "not ready". */
  #awaitCluster(): void {
    const { clock, log, initialSyncTimeout, failed } = this.#options;
    const start = clock.now();
    const look = (): void => {
      const store = this.#view?.store;
      if (store?.isSynced === true) {
        this.#reminder?.cancel();
        this.#isSynced = true;
        this.#open().catch((error: unknown) => failed(messageOf(error)));
        return;
      }
      const missing = Array.from(store?.kinds ?? []).filter((kind) => store?.isKindSynced(kind) !== true);
      if (clock.now() - start >= initialSyncTimeout) {
        this.#reminder?.cancel();
        failed(`Timeout waiting for initialization: ${missing.join(", ")} not listed`);
      } else log.info(`Waiting for ${missing.toSorted().join(", ")} to be listed`);
    };
    this.#reminder = clock.every(REMINDER_MS, look);
    void this.#view?.store.whenSynced().then(() => {
      if (!this.#isStopped && !this.#isSynced) look();
    });
  }

  async #open(): Promise<void> {
    const { healthPort, log } = this.#options;
    const port = await this.#pages.listen("", healthPort);
    log.info(`Initialized services and endpoints, /readiness on port ${port}`);
  }

  async #page(path: string): Promise<Page | undefined> {
    if (path === "/readiness") return { status: 200, body: "ok\n" };
    if (path !== "/cache" || this.#view === undefined) return undefined;
    const body = await cachePage(this.#view, this.#options.domain);
    return { status: 200, body, contentType: "application/json" };
  }

  async #metricsPage(path: string): Promise<Page | undefined> {
    if (path !== this.#options.metrics?.path) return undefined;
    const { body, contentType } = await this.#registry.expose();
    return { status: 200, body, contentType };
  }
}
