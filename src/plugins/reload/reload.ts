import type { GaugeFamily } from "../../lib/metric-families.ts";
import type { CounterSlot, PluginInstance, Site, Timer } from "../../plugin/index.ts";
import { staysInForce } from "../../plugin/server-view.ts";

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

/** Reads the Corefile at intervals, and has it put into force when it says something new. */
class CorefileWatcher {
  /** That of the last directive. */
  config: ReloadConfig = { interval: Number.POSITIVE_INFINITY, jitter: 0 };
  readonly #site: Site;
  readonly #failed: CounterSlot;
  readonly #version: GaugeFamily;
  /** Hash of the configuration that runs, or was tried last. */
  #known: string;
  /** Why the Corefile could not be read the last time. */
  #problem: string | undefined;
  /** What was read last is not what is in force, because that failed. */
  #hasFailed = false;
  #period = 0;
  #timer: Timer | undefined;
  #ended = false;

  constructor(site: Site) {
    this.#site = site;
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
    const { control, log, random } = this.#site;
    log.info(`Running configuration SHA512 = ${control.sha512}`);
    this.#version.clear();
    this.#version.slot("sha512", control.sha512).set(1);
    const { interval } = this.config;
    const jitter = Math.min(this.config.jitter, interval / 2);
    this.#period = interval + random.fraction() * jitter - jitter / 2;
    this.#schedule();
  }

  stop(): void {
    this.#ended = true;
    this.#timer?.cancel();
  }

  #schedule(): void {
    this.#timer = this.#site.clock.after(this.#period, () => {
      void this.#look().then(() => {
        if (!this.#ended) this.#schedule();
      });
    });
  }

  async #look(): Promise<void> {
    const { control } = this.#site;
    let sha512: string;
    try {
      ({ sha512 } = await control.readConfiguration());
    } catch (error) {
      this.#refuse(error);
      return;
    }
    this.#problem = undefined;
    if (this.#ended) return;
    if (sha512 === control.sha512 && this.#hasFailed) {
      this.#hasFailed = false;
      this.#site.log.info("The Corefile is again what is in force");
    }
    if (sha512 === this.#known) return;
    // Tried once, however it ends.
    this.#known = sha512;
    if (sha512 === control.sha512) return;
    try {
      await control.reload();
      // The new configuration has a watcher of its own, or none.
      this.#ended = true;
    } catch (error) {
      // The server has said where, and what goes on.
      this.#fail(messageOf(error).split("\n", 1));
    }
  }

  /** A file that does not parse has no hash: it is known by what is wrong with it. */
  #refuse(error: unknown): void {
    const reason = messageOf(error);
    if (reason === this.#problem || this.#ended) return;
    this.#problem = reason;
    this.#fail(reason.split("\n"));
    const configuration = this.#site.control.view?.configuration();
    if (configuration !== undefined) this.#site.log.warning(staysInForce(configuration));
  }

  #fail([first = "", ...others]: readonly string[]): void {
    this.#failed.increment();
    this.#hasFailed = true;
    this.#site.log.error(`Corefile changed but reload failed: ${first}`);
    for (const line of others) this.#site.log.error(line);
  }
}

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).trim();
}
