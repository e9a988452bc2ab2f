/**
 * node-cache: keeps the Corefile of a node's cache in step with kube-dns's ConfigMap, and sets up the network around it
 * (docs/spec/kube-dns.md#node-cache).
 */

import { rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { readTextFile } from "../../lib/files/bounded-file.ts";
import type { Logger } from "../../lib/logging/log.ts";
import type { CounterFamily } from "../../lib/metrics/metric-families.ts";
import { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import { HttpPages, type Page } from "../http-pages.ts";
import { ConfigDirectory } from "../kube-dns/config-directory.ts";
import { EMPTY_KUBE_DNS_CONFIG, type KubeDnsConfig } from "../kube-dns/config-map.ts";
import { ConfigUpdates } from "../kube-dns/config-updates.ts";
import { renderCorefile } from "./corefile-template.ts";
import type { NodeNetwork } from "./node-network.ts";

export interface NodeCacheOptions {
  readonly localAddresses: readonly string[];
  readonly network: NodeNetwork;
  readonly setsUpInterface: boolean;
  readonly setsUpRules: boolean;
  readonly tearsDown: boolean;
  /** Milliseconds between two checks of the network. */
  readonly syncInterval: number;
  /** The template, and the Corefile made from it. */
  readonly baseCorefile: string;
  readonly corefile: string;
  /** Folder with kube-dns's ConfigMap; empty for none. */
  readonly kubeDnsFolder: string;
  /** Milliseconds between two checks of the template and the folder. */
  readonly configPeriod: number;
  readonly clusterDns: string | undefined;
  readonly port: number;
  /** Address of the setup metrics. */
  readonly metrics: { readonly host: string; readonly port: number };
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when the Corefile has been rewritten. */
  readonly changed: () => void;
}

const ERROR_TYPES = ["iptables", "iptables_lock", "interface_add", "interface_check", "configmap"] as const;
type ErrorType = (typeof ERROR_TYPES)[number];
/** Queries in flight when the rules are removed still get answers. */
const LAST_QUERIES_MS = 200;
const AGAIN_MS = 200;

export class NodeCache {
  readonly #options: NodeCacheOptions;
  readonly #registry = new MetricsRegistry();
  readonly #pages: HttpPages;
  readonly #errors: CounterFamily;
  #config: KubeDnsConfig = EMPTY_KUBE_DNS_CONFIG;
  #template = "";
  #written = "";
  #sources: ConfigDirectory[] = [];
  #timer: Timer | undefined;
  #metricsTimer: Timer | undefined;
  #working: Promise<void> = Promise.resolve();
  #isServing = false;
  readonly #said = new Map<ErrorType, string>();

  constructor(options: NodeCacheOptions) {
    this.#options = options;
    this.#errors = this.#registry.counter({
      name: "coredns_nodecache_setup_errors_total",
      help: "The number of errors during periodic network setup for node-cache.",
      labels: ["errortype"],
    });
    for (const type of ERROR_TYPES) this.#errors.slot(type);
    this.#pages = new HttpPages((path) => this.#page(path));
  }

  /** Writes the Corefile and creates the interface before serving. @throws if there is no initial Corefile */
  async prepare(): Promise<void> {
    const { kubeDnsFolder, clock, log, configPeriod, baseCorefile } = this.#options;
    const counted = this.#counted(log);
    const configs = new ConfigUpdates(async (config) => {
      // A template that does not fit must not keep the old configuration.
      this.#config = config;
      await this.#write();
    }, counted);
    const templates = new ConfigUpdates(async () => {
      this.#template = await readTextFile(baseCorefile);
      await this.#write();
    }, counted);
    const base = new ConfigDirectory({
      path: dirname(baseCorefile),
      period: configPeriod,
      clock,
      updates: {
        // The files in the template's folder are not kube-dns's configuration.
        offer: (version) => templates.offer(version, undefined),
        unreadable: (reason) => templates.unreadable(reason),
        readable: () => templates.readable(),
      },
    });
    this.#sources = [base];
    await base.start();
    if (kubeDnsFolder !== "") {
      const folder = new ConfigDirectory({
        path: kubeDnsFolder,
        period: configPeriod,
        clock,
        updates: configs,
      });
      this.#sources.push(folder);
      await folder.start();
    }
    await this.#setUpInterface();
  }

  /** Called when the server listens: redirects queries to it. */
  async serve(): Promise<void> {
    this.#isServing = true;
    await this.#showMetrics();
    await this.#checkInTurn();
    // The process may have been told to stop in between.
    if (!this.#isServing) return;
    this.#timer = this.#options.clock.every(this.#options.syncInterval, () => void this.#checkInTurn());
  }

  /** Runs checks one after the other, so that leaving waits for those in progress: a rule added later would stay. */
  #checkInTurn(): Promise<void> {
    this.#working = this.#working.then(() => this.#check());
    return this.#working;
  }

  /** Sends queries to the cluster from now on. Queries in flight are answered before this resolves. */
  async leave(): Promise<void> {
    const { clock, tearsDown, setsUpRules, network } = this.#options;
    this.#timer?.cancel();
    this.#metricsTimer?.cancel();
    this.#isServing = false;
    await this.#working;
    for (const source of this.#sources) await source.stop();
    if (!tearsDown || !setsUpRules) return;
    await this.#attempt("iptables", () => network.removeRules());
    await new Promise<void>((resolve) => clock.after(LAST_QUERIES_MS, resolve));
  }

  /** Called when the server has stopped listening. */
  async stop(): Promise<void> {
    const { tearsDown, setsUpInterface, network } = this.#options;
    if (tearsDown && setsUpInterface) await this.#attempt("interface_check", () => network.removeInterface());
    await this.#pages.close();
  }

  /** The previous instance may still hold the port. */
  async #showMetrics(): Promise<void> {
    const { metrics, clock, log } = this.#options;
    try {
      await this.#pages.listen(metrics.host, metrics.port);
    } catch (error) {
      if (this.#metricsTimer === undefined) log.warning(`node-cache: no metrics yet: ${messageOf(error)}`);
      if (!this.#isServing) return;
      this.#metricsTimer = clock.after(AGAIN_MS, () => void this.#showMetrics());
    }
  }

  async #setUpInterface(): Promise<void> {
    const { setsUpInterface, network } = this.#options;
    if (setsUpInterface) await this.#attempt("interface_add", () => network.addInterface());
  }

  async #check(): Promise<void> {
    if (!this.#isServing) return;
    const { setsUpInterface, setsUpRules, network } = this.#options;
    if (setsUpInterface) await this.#attempt("interface_check", () => network.renewAddresses());
    if (setsUpRules) await this.#attempt("iptables", () => network.renewRules());
  }

  /** A failed step is counted and logged once; the next check tries it again. */
  async #attempt(type: ErrorType, step: () => Promise<void>): Promise<void> {
    try {
      await step();
      this.#said.delete(type);
    } catch (error) {
      const reason = messageOf(error);
      const kind = type === "iptables" && /lock/.test(reason) ? "iptables_lock" : type;
      this.#errors.slot(kind).increment();
      if (this.#said.get(type) !== reason) this.#options.log.error(`node-cache: ${reason}`);
      this.#said.set(type, reason);
    }
  }

  async #write(): Promise<void> {
    if (this.#template === "") return;
    const { localAddresses, clusterDns, port, corefile, log, changed } = this.#options;
    const config = this.#config;
    const { text, warnings } = renderCorefile(this.#template, { localAddresses, clusterDns, config, port });
    for (const warning of warnings) log.warning(`node-cache: ${warning}`);
    if (text === this.#written) return;
    // Readers must not see half of the file.
    await writeFile(`${corefile}.new`, text);
    await rename(`${corefile}.new`, corefile);
    this.#written = text;
    log.info(`node-cache: wrote ${corefile}`);
    if (this.#isServing) changed();
  }

  /** Counts refused configurations. */
  #counted(log: Logger): Logger {
    return {
      debugEnabled: log.debugEnabled,
      debug: (message) => log.debug(message),
      info: (message) => log.info(message),
      warning: (message) => log.warning(message),
      takesFields: log.takesFields,
      infoWith: (message, fields) => log.infoWith(message, fields),
      plain: (line) => log.plain(line),
      object: (line) => log.object(line),
      child: (prefix) => log.child(prefix),
      error: (message) => {
        this.#errors.slot("configmap").increment();
        log.error(message);
      },
    };
  }

  async #page(path: string): Promise<Page | undefined> {
    if (path !== "/metrics") return undefined;
    const { body, contentType } = await this.#registry.expose();
    return { status: 200, body, contentType };
  }
}
