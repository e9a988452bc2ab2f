/**
 * dnsmasq-nanny: runs dnsmasq, or our replacement, and keeps it in step with kube-dns's ConfigMap
 * (docs/spec/kube-dns.md#dnsmasq-nanny).
 */

import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { Name } from "../../dns/name.ts";
import { readBoundedFile, readTextFile } from "../../lib/files/bounded-file.ts";
import type { ProcessLog } from "../../lib/logging/log.ts";
import { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import type { Random } from "../../plugin/contract/site.ts";
import type { CacheView } from "../../plugin/services/cache-view.ts";
import { parseNameservers } from "../../upstream/config/resolv-conf.ts";
import { CorefileServer } from "../corefile-server.ts";
import { ConfigDirectory } from "../kube-dns/config-directory.ts";
import type { KubeDnsConfig } from "../kube-dns/config-map.ts";
import { EMPTY_KUBE_DNS_CONFIG } from "../kube-dns/config-map.ts";
import { ConfigUpdates } from "../kube-dns/config-updates.ts";
import { forwardAddress, type HostResolver } from "../server-addresses.ts";
import { datedDenials, plainDenials } from "./bare-denials.ts";
import { type FolderReader, withConfFiles } from "./conf-files.ts";
import { type DnsmasqSettings, readDnsmasqArguments } from "./dnsmasq-arguments.ts";
import { DnsmasqProcess } from "./dnsmasq-process.ts";
import { DnsmasqLocalNames, localNamesPlugin } from "./local-names.ts";
import { nannyArguments } from "./nanny-arguments.ts";
import { nannyCorefile } from "./nanny-corefile.ts";
import { QUERY_FILTER } from "./query-filter.ts";
import { Statistics } from "./statistics.ts";

export interface DnsmasqNannyOptions {
  /** The words after `--` on the command line. */
  readonly words: readonly string[];
  /** Path of a real dnsmasq; `undefined` for our own cache and routes. */
  readonly dnsmasq: string | undefined;
  /** Whether configuration changes are applied. */
  readonly restarts: boolean;
  readonly configFolder: string;
  /** Milliseconds. */
  readonly syncInterval: number;
  /** Milliseconds between two statistics reports in the log; 0 for never. */
  readonly logInterval: number;
  readonly resolveHost: HostResolver;
  /** IP addresses of this machine. */
  readonly ownAddresses: () => readonly string[];
  readonly clock: Clock;
  readonly random: Random;
  readonly log: ProcessLog;
  /** Called on a fatal error. */
  readonly failed: (reason: string) => void;
}

/** Option files of the machine. */
const FILES: FolderReader = {
  // An empty file stands for /dev/null, which is not a regular file.
  readText: async (path) => (path === "/dev/null" ? "" : await readTextFile(path)),
  list: async (folder) =>
    (await readdir(folder, { withFileTypes: true }))
      .filter((each) => !each.isDirectory())
      .map(({ name }) => name),
};

export class DnsmasqNanny {
  readonly #options: DnsmasqNannyOptions;
  readonly #metrics = new MetricsRegistry({ processMetrics: false });
  readonly #statistics = new Statistics(this.#metrics);
  readonly #server: CorefileServer;
  readonly #process: DnsmasqProcess | undefined;
  readonly #folder: ConfigDirectory;
  #settings: DnsmasqSettings = readDnsmasqArguments([]);
  #names = new DnsmasqLocalNames(this.#settings);
  #caches: readonly CacheView[] = [];
  #reports: Timer | undefined;
  #inForce = "";
  #hasStarted = false;

  constructor(options: DnsmasqNannyOptions) {
    const { dnsmasq, log, failed, configFolder, syncInterval, clock } = options;
    this.#options = options;
    this.#server = new CorefileServer({
      ...options,
      name: "dnsmasq-nanny",
      plugins: [this.#statistics.front],
      inFrontOf: {
        cache: [
          localNamesPlugin(
            () => this.#names,
            (caches) => {
              this.#caches = caches;
            },
          ),
          plainDenials,
        ],
        forward: [QUERY_FILTER, this.#statistics.forwarded, datedDenials(() => this.#settings.negTtl)],
      },
      metrics: this.#metrics,
      onFatal: failed,
    });
    this.#process = dnsmasq === undefined ? undefined : new DnsmasqProcess(dnsmasq, log, failed);
    this.#folder = new ConfigDirectory({
      path: configFolder,
      period: syncInterval,
      clock,
      updates: new ConfigUpdates((config) => this.#take(config), log),
    });
  }

  /** @throws if the first configuration cannot be served */
  async start(): Promise<void> {
    // Reports invalid options at the start.
    if (this.#process === undefined) readDnsmasqArguments(await withConfFiles(this.#options.words, FILES));
    await this.#folder.start();
    if (this.#inForce === "") await this.#take(EMPTY_KUBE_DNS_CONFIG);
    this.#hasStarted = true;
    const { logInterval, clock } = this.#options;
    if (logInterval > 0) this.#reports = clock.every(logInterval, () => this.report());
  }

  async stop(): Promise<void> {
    this.#reports?.cancel();
    await this.#folder.stop();
    await this.#process?.stop();
    await this.#server.stop();
  }

  /** Writes statistics to the log, as dnsmasq does on SIGUSR1. */
  report(): void {
    if (this.#process !== undefined) this.#process.signal("SIGUSR1");
    else for (const line of this.#statistics.lines()) this.#options.log.info(line);
  }

  /** Reads the hosts files again and clears the cache, as dnsmasq does on SIGHUP. */
  async refresh(): Promise<void> {
    if (this.#process !== undefined) {
      this.#process.signal("SIGHUP");
      return;
    }
    const settings = this.#settings;
    const names = await this.#readNames(settings);
    if (settings !== this.#settings) return;
    this.#names = names;
    await Promise.all(this.#caches.map((cache) => cache.forget(Name.root, true)));
    this.#options.log.info("cleared cache, read hosts files");
  }

  async #take(config: KubeDnsConfig): Promise<void> {
    const { words, resolveHost, restarts, log } = this.#options;
    if (this.#hasStarted && !restarts) {
      log.info("configuration changed, but -restartDnsmasq is not set: ignoring it");
      return;
    }
    const all = [...words, ...(await nannyArguments(config, resolveHost))];
    const text = JSON.stringify(all);
    if (text === this.#inForce) return;
    if (this.#process === undefined) await this.#serve(readDnsmasqArguments(await withConfFiles(all, FILES)));
    else {
      await this.#process.stop();
      await this.#process.start(all);
    }
    this.#inForce = text;
  }

  async #serve(settings: DnsmasqSettings): Promise<void> {
    const names = await this.#readNames(settings);
    const servers = [...settings.servers, ...(await this.#systemServers(settings))];
    const before = [this.#settings, this.#names] as const;
    [this.#settings, this.#names] = [settings, names];
    try {
      await this.#server.serve(nannyCorefile({ settings, servers }));
    } catch (error) {
      [this.#settings, this.#names] = before;
      throw error;
    }
    const domainServers = [...settings.domains.values()].flatMap((own) => (own === "others" ? [] : own));
    this.#statistics.described = {
      cacheSize: settings.cacheSize,
      keepsDenials: settings.keepsDenials,
      servers: [...new Set([...domainServers, ...servers])].map(withPort),
    };
  }

  /** The servers of resolv.conf, which are used as well unless `--no-resolv` is set. */
  async #systemServers({ readsResolvConf, resolvConf, port }: DnsmasqSettings): Promise<string[]> {
    if (!readsResolvConf) return [];
    const { log, ownAddresses } = this.#options;
    const own = port === DNS_PORT ? ownAddresses() : [];
    const found = parseNameservers(await readTextFile(resolvConf).catch(() => "")).map(({ host }) => host);
    for (const host of found)
      if (own.includes(host)) log.warning(`ignoring nameserver ${host} of ${resolvConf}: it is this server`);
    return found
      .filter((host) => !own.includes(host))
      .map((address) => forwardAddress({ address, port: "" }));
  }

  async #readNames(settings: DnsmasqSettings): Promise<DnsmasqLocalNames> {
    const names = new DnsmasqLocalNames(settings);
    for (const path of [...(settings.readsHosts ? ["/etc/hosts"] : []), ...settings.hostsFiles]) {
      try {
        for (const file of await hostsFilesAt(path)) await names.addFile(await readBoundedFile(file));
      } catch (error) {
        this.#options.log.error(`failed to load names from ${path}: ${messageOf(error)}`);
      }
    }
    return names;
  }
}

const DNS_PORT = 53;

/** A file, or the files of a folder. */
async function hostsFilesAt(path: string): Promise<string[]> {
  if (path === "/dev/null") return [];
  if (!(await stat(path)).isDirectory()) return [path];
  const names = (await FILES.list(path)).filter((name) => !/^[.#]|[~#]$/.test(name));
  return names.toSorted().map((name) => join(path, name));
}

/** As upstreams appear in metrics. */
function withPort(server: string): string {
  if (parseIpAddress(server) === undefined) return server;
  return forwardAddress({ address: server, port: String(DNS_PORT) });
}
