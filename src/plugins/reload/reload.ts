import type { GaugeFamily } from "../../lib/metrics/metric-families.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { staysInForce } from "../../plugin/contract/server-view.ts";
import type { ServerControl } from "../../plugin/contract/site.ts";
import type { Clock, CounterSlot, Logger, PluginInstance, Random, Site, Timer } from "../../plugin/index.ts";

/** Milliseconds. */
export interface ReloadConfig {
  readonly interval: number;
  /** At most half of the interval is used. */
  readonly jitter: number;
}

/** The directive in one server block; all of them share one watcher. */
export class Reload implements PluginInstance {
  readonly #watcher: CorefileWatcher;

  constructor(config: ReloadConfig, site: Site) {
    this.#watcher = site.shared("watcher", () => new CorefileWatcher(site));
    this.#watcher.config = config;
  }

  started(): void {
    this.#watcher.start();
  }

  stop(): void {
    this.#watcher.stop();
  }
}

/**
 * Reads the Corefile at intervals, and reloads the server when it has changed. It continues if a new Corefile has no
 * `reload`, as in CoreDNS, so that a directive lost by mistake can be restored by the next change. Therefore it holds
 * no reference to the configuration that it started with.
 */
class CorefileWatcher {
  /** The options of the last directive. */
  config: ReloadConfig = { interval: Number.POSITIVE_INFINITY, jitter: 0 };
  readonly #control: ServerControl;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #failed: CounterSlot;
  readonly #version: GaugeFamily;
  /** Hash of the running configuration, or of the one tried last. */
  #known: string;
  /** Why the Corefile could not be read last time. */
  #problem: string | undefined;
  /** The server's count of refused contents when {@link #problem} was reported. */
  #refusedContents = 0;
  /** The content read last is not in force, because its reload failed. */
  #hasFailed = false;
  #period = 0;
  #timer: Timer | undefined;
  #ended = false;
  #forgetServer: (() => void) | undefined;

  constructor(site: Site) {
    this.#control = site.control;
    this.#log = site.log;
    this.#clock = site.clock;
    this.#random = site.random;
    this.#known = site.control.sha512;
    this.#failed = site.metrics
      .counter({
        name: "coredns_reload_failed_total",
        help: "Changed Corefiles that could not be put into force.",
      })
      .slot();
    this.#version = site.metrics.gauge({
      name: "coredns_reload_version_info",
      help: "Always 1; the label says which configuration is in force.",
      labels: ["hash", "value"],
    });
  }

  start(): void {
    if (this.#timer !== undefined) return;
    this.#announce(this.#control.sha512);
    const { interval } = this.config;
    const jitter = Math.min(this.config.jitter, interval / 2);
    this.#period = interval + this.#random.fraction() * jitter - jitter / 2;
    this.#schedule();
  }

  /** Called when the configuration is replaced, or the server stops. */
  stop(): void {
    const later = this.#control.inForce?.();
    if (this.#timer === undefined || this.#ended || later === undefined || later.hasPlugin("reload")) {
      this.#end();
      return;
    }
    if (this.#forgetServer !== undefined) return;
    this.#forgetServer = this.#control.untilServerStops?.(() => this.#end());
    this.#announce(later.sha512);
  }

  #end(): void {
    this.#ended = true;
    this.#timer?.cancel();
    this.#forgetServer?.();
  }

  #announce(sha512: string): void {
    this.#log.info(`Running configuration SHA512 = ${sha512}`);
    this.#version.clear();
    this.#version.slot("sha512", sha512).set(1);
  }

  #schedule(): void {
    this.#timer = this.#clock.after(this.#period, () => {
      void this.#look().then(() => {
        if (!this.#ended) this.#schedule();
      });
    });
  }

  async #look(): Promise<void> {
    const control = this.#control;
    const inForce = control.inForce?.();
    if (this.#forgetServer !== undefined && (inForce === undefined || inForce.hasPlugin("reload"))) {
      // A reload by signal has made another watcher.
      this.#end();
      return;
    }
    let sha512: string;
    try {
      ({ sha512 } = await control.readConfiguration());
    } catch (error) {
      this.#refuse(error);
      return;
    }
    this.#problem = undefined;
    if (this.#ended) return;
    const current = inForce?.sha512 ?? control.sha512;
    if (sha512 === current && this.#hasFailed) {
      this.#hasFailed = false;
      this.#log.info("The Corefile equals the running configuration again");
    }
    if (sha512 === this.#known) return;
    // Tried once, whatever the result.
    this.#known = sha512;
    if (sha512 === current) return;
    try {
      await control.reload();
      const now = control.inForce?.();
      // The new configuration has its own watcher, unless it has no `reload`.
      if (now === undefined || now.hasPlugin("reload")) this.#end();
    } catch (error) {
      // The server has logged the place, and which configuration stays in force.
      this.#fail(messageOf(error).trim().split("\n", 1));
    }
  }

  /** A file that does not parse has no hash: it is identified by its error, and by the server's count of contents. */
  #refuse(error: unknown): void {
    const reason = messageOf(error).trim();
    const contents = this.#control.refusedContents?.() ?? 0;
    if (this.#ended || (reason === this.#problem && contents === this.#refusedContents)) return;
    this.#problem = reason;
    this.#refusedContents = contents;
    this.#fail(reason.split("\n"));
    const configuration = this.#control.view?.configuration();
    if (configuration !== undefined) this.#log.warning(staysInForce(configuration));
  }

  #fail([first = "", ...others]: readonly string[]): void {
    this.#failed.increment();
    this.#hasFailed = true;
    this.#log.error(`Corefile changed but reload failed: ${first}`);
    for (const line of others) this.#log.error(line);
  }
}
