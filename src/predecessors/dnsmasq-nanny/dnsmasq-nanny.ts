/** dnsmasq-nanny: dnsmasq, or what stands in for it, kept in step with kube-dns's ConfigMap (kube-dns facts 6.2). */
import { readdir } from "node:fs/promises";
import { readTextFile } from "../../lib/bounded-file.ts";
import type { Clock, Timer } from "../../lib/clock.ts";
import type { ProcessLog } from "../../lib/log.ts";
import { MetricsRegistry } from "../../lib/metrics.ts";
import type { Random } from "../../plugin/site.ts";
import { parseNameservers } from "../../upstream/resolv-conf.ts";
import { CorefileServer } from "../corefile-server.ts";
import { ConfigDirectory } from "../kube-dns/config-directory.ts";
import type { KubeDnsConfig } from "../kube-dns/config-map.ts";
import { EMPTY_KUBE_DNS_CONFIG } from "../kube-dns/config-map.ts";
import { ConfigUpdates } from "../kube-dns/config-updates.ts";
import { forwardAddress, type HostResolver } from "../server-addresses.ts";
import { type FolderReader, withConfFiles } from "./conf-files.ts";
import { type DnsmasqSettings, readDnsmasqArguments } from "./dnsmasq-arguments.ts";
import { DnsmasqProcess } from "./dnsmasq-process.ts";
import { nannyArguments } from "./nanny-arguments.ts";
import { nannyCorefile } from "./nanny-corefile.ts";
import { QUERY_FILTER } from "./query-filter.ts";
import { Statistics } from "./statistics.ts";

export interface DnsmasqNannyOptions {
  /** Behind `--` on the command line. */
  readonly words: readonly string[];
  /** Path of a real dnsmasq; `undefined` for our own cache and routes. */
  readonly dnsmasq: string | undefined;
  /** Whether a change of the configuration is put into force. */
  readonly restarts: boolean;
  readonly configFolder: string;
  /** Milliseconds. */
  readonly syncInterval: number;
  /** Milliseconds between two reports of statistics in the log; 0 for never. */
  readonly logInterval: number;
  readonly resolveHost: HostResolver;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: ProcessLog;
  /** It cannot go on. */
  readonly failed: (reason: string) => void;
}

/** Files of options, as they are on the machine. */
const FILES: FolderReader = {
  // What stands for no file is none that can be read.
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
      inFrontOf: { name: "forward", plugins: [QUERY_FILTER, this.#statistics.forwarded] },
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

  /** @throws where the first configuration cannot be served */
  async start(): Promise<void> {
    // Words that are not understood are so from the beginning.
    if (this.#process === undefined) readDnsmasqArguments(await withConfFiles(this.#options.words, FILES));
    await this.#folder.start();
    if (this.#inForce === "") await this.#take(EMPTY_KUBE_DNS_CONFIG);
    this.#hasStarted = true;
    const { logInterval, clock } = this.#options;
    if (logInterval > 0) this.#reports = clock.every(logInterval, () => this.#report());
  }

  async stop(): Promise<void> {
    this.#reports?.cancel();
    await this.#folder.stop();
    await this.#process?.stop();
    await this.#server.stop();
  }

  async #take(config: KubeDnsConfig): Promise<void> {
    const { words, resolveHost, restarts, log } = this.#options;
    if (this.#hasStarted && !restarts) {
      log.info("configuration: it has changed, and -restartDnsmasq is not set: nothing is done");
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
    const { log } = this.#options;
    for (const name of settings.without) log.warning(`dnsmasq's option --${name} has no effect here`);
    const servers = [...settings.servers];
    if (settings.readsResolvConf && servers.length === 0) {
      const found = parseNameservers(await readTextFile(settings.resolvConf).catch(() => ""));
      servers.push(...found.map(({ host }) => forwardAddress({ address: host, port: "" })));
    }
    const hostLines: string[] = [];
    for (const file of settings.hostsFiles) {
      try {
        hostLines.push(...readHosts(await readTextFile(file)));
      } catch (error) {
        log.error(
          `failed to load names from ${file}: ${error instanceof Error ? error.message : String(error)}`,
        );
      }
    }
    await this.#server.serve(nannyCorefile({ settings, servers, hostLines }));
    this.#statistics.cacheSize = settings.cacheSize;
    const everybody = new Set([...[...settings.domains.values()].flat(), ...servers]);
    this.#statistics.servers = [...everybody].map((server) =>
      /^[^:]+$/.test(server) ? `${server}:53` : /^[^[].*:.*:/.test(server) ? `[${server}]:53` : server,
    );
  }

  #report(): void {
    if (this.#process !== undefined) this.#process.writeStatistics();
    else for (const line of this.#statistics.lines()) this.#options.log.info(line);
  }
}

function readHosts(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.replace(/#.*/s, "").trim())
    .filter((line) => /^[0-9a-fA-F:.]+\s+\S/.test(line));
}
