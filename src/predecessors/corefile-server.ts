/** Runs the ordinary server with a generated Corefile and with plugins of the command's own. */
import { nodeHost } from "../corefile/node-host.ts";
import type { ProcessLog } from "../lib/logging/log.ts";
import type { MetricsRegistry } from "../lib/metrics/metrics.ts";
import { version } from "../lib/text/version.ts";
import type { Clock } from "../lib/time/clock.ts";
import type { PluginDefinition } from "../plugin/contract/define-plugin.ts";
import type { Random } from "../plugin/contract/site.ts";
import { thisMachine } from "../server/configuration/machine.ts";
import { withPlugin } from "../server/configuration/plugin-list.ts";
import { builtInPlugins, importBuiltIn, PluginRegistry } from "../server/configuration/plugin-registry.ts";
import { EmbeddedServer } from "../server/embedded-server.ts";

export interface CorefileServerOptions {
  /** Name of the Corefile in messages. */
  readonly name: string;
  /** Run before all others, in this order. */
  readonly plugins: readonly PluginDefinition<unknown>[];
  /** Plugins that run directly before the named one, in this order. */
  readonly inFrontOf?: Readonly<Record<string, readonly PluginDefinition<unknown>[]>>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: ProcessLog;
  readonly metrics: MetricsRegistry;
  readonly onFatal?: (message: string) => void;
}

export class CorefileServer {
  readonly #options: CorefileServerOptions;
  #server: EmbeddedServer | undefined;
  #corefile = "";

  constructor(options: CorefileServerOptions) {
    this.#options = options;
  }

  get corefile(): string {
    return this.#corefile;
  }

  /**
   * Starts with this Corefile, or reloads it without losing a query. An unchanged Corefile does nothing.
   * @throws the error in words; the running configuration stays in force
   */
  async serve(corefile: string): Promise<void> {
    if (corefile === this.#corefile) return;
    if (this.#server === undefined) {
      const server = await this.#make(corefile);
      await server.start();
      this.#server = server;
    } else await this.#server.reload(corefile);
    this.#corefile = corefile;
  }

  async stop(): Promise<void> {
    await this.#server?.stop();
  }

  async #make(corefile: string): Promise<EmbeddedServer> {
    const { name, plugins, inFrontOf, ...common } = this.#options;
    const own = new Map(plugins.map((plugin) => [plugin.name, plugin]));
    const entryOf = (plugin: PluginDefinition<unknown>) => ({
      name: plugin.name,
      module: name,
      isPinned: true,
      isObject: true,
    });
    let entries = [
      ...plugins.map(entryOf),
      ...(await builtInPlugins()).filter((entry) => !own.has(entry.name)),
    ];
    for (const [neighbour, added] of Object.entries(inFrontOf ?? {})) {
      for (const plugin of added) {
        own.set(plugin.name, plugin);
        entries = withPlugin(entries, entryOf(plugin), { relation: "before", name: neighbour });
      }
    }
    const registry = new PluginRegistry(entries, {
      load: async (entry) => own.get(entry.name) ?? importBuiltIn(entry),
    });
    return new EmbeddedServer({
      ...common,
      corefile,
      file: name,
      registry,
      host: nodeHost,
      machine: thisMachine(process.env),
      version,
    });
  }
}
