/** `portolan`: the server for embedding in other programs and tests. */
import { dirname } from "node:path";
import { nodeHost } from "./corefile/node-host.ts";
import { ProcessLog } from "./lib/logging/log.ts";
import { MetricsRegistry } from "./lib/metrics/metrics.ts";
import { version } from "./lib/text/version.ts";
import { type Clock, SystemClock } from "./lib/time/clock.ts";
import type { PluginDefinition } from "./plugin/contract/define-plugin.ts";
import {
  ConfigurationError,
  type ConfigurationOptions,
  type CorefileSource,
  inspectConfiguration,
  readConfiguration,
} from "./server/configuration/configuration.ts";
import { systemRandom, thisMachine } from "./server/configuration/machine.ts";
import {
  type PluginPlace,
  parseAddedPlugin,
  readPluginList,
  withPlugin,
} from "./server/configuration/plugin-list.ts";
import {
  builtInPlugins,
  importBuiltIn,
  type PluginEntry,
  PluginListError,
  PluginRegistry,
} from "./server/configuration/plugin-registry.ts";
import { EmbeddedServer } from "./server/embedded-server.ts";
import { isolated } from "./server/isolation/isolation.ts";
import { DEFAULT_TIME_BUDGET } from "./server/isolation/time-budget.ts";

export type { ProcessLog } from "./lib/logging/log.ts";
export { version } from "./lib/text/version.ts";
export { ConfigurationError } from "./server/configuration/configuration.ts";
export { PluginPlaceError } from "./server/configuration/plugin-list.ts";
export { PluginListError } from "./server/configuration/plugin-registry.ts";
export type { EmbeddedServer, ListenAddress, ServerQuestion } from "./server/embedded-server.ts";
export { ServerAnswer } from "./server/embedded-server.ts";
export { NoAnswer } from "./server/explaining/socket-client.ts";
export { ListenError } from "./transports/transport.ts";

export interface CreateServerOptions {
  /** Text of the Corefile. Port 0 in it is a port that is free; `addresses` has the real one. */
  readonly corefile: string;
  /** Name for messages, and the place that imports, modules of plugins and so on are relative to. `Corefile` unless given. */
  readonly file?: string;
  /** Plugins in addition to the program's own, or in the place of those of the same name. */
  readonly plugins?: readonly PluginToAdd[];
  /** A `plugin.cfg` in place of the program's own list. A relative path starts from the working directory. */
  readonly pluginConfig?: string;
  /** Milliseconds that an added plugin has for a query; 0 for no bound. 5,000 unless given. */
  readonly pluginTimeout?: number;
  /** Takes the lines of the log, without line ends. Nothing is logged unless given. */
  readonly log?: ProcessLog | ((line: string) => void);
  /** Time; that of the machine unless given. `FakeClock` of `portolan/testing` stands still until it is told to go on. */
  readonly clock?: Clock;
  /** Port of keys without one; 53 unless given. */
  readonly defaultPort?: number;
}

/**
 * - a text as after `-plugin`: `greet:./greet.ts`, `greet:./greet.ts@before=cache`
 * - what `definePlugin` returns
 * - the same with a place in the chain
 *
 * Objects cannot go to other threads: a Corefile with `multisocket` needs modules.
 */
export type PluginToAdd = string | PluginDefinition<unknown> | PlacedDefinition;

export interface PlacedDefinition {
  readonly plugin: PluginDefinition<unknown>;
  /** Name of the plugin that it stands directly in front of. */
  readonly before?: string;
  /** Name of the plugin that it stands directly behind. */
  readonly after?: string;
}

/**
 * A server of one's own; call `start()`, and `stop()` at the end.
 * @throws ConfigurationError for a Corefile without server blocks, or one that cannot be read; PluginListError, PluginPlaceError
 */
export async function createServer(options: CreateServerOptions): Promise<EmbeddedServer> {
  const { corefile, file = "Corefile", log = () => undefined, defaultPort } = options;
  const surroundings = {
    registry: await registryOf(options, dirname(file)),
    host: nodeHost,
    machine: thisMachine(process.env),
  };
  await requireSoundCorefile(
    { text: corefile, file },
    { ...surroundings, defaultPort: defaultPort ?? DNS_PORT },
  );
  return new EmbeddedServer({
    corefile,
    file,
    ...surroundings,
    clock: options.clock ?? new SystemClock(),
    random: systemRandom(),
    log: log instanceof ProcessLog ? log : new ProcessLog({ writeLine: log }),
    metrics: new MetricsRegistry(),
    version,
    ...(defaultPort !== undefined && { defaultPort }),
  });
}

const DNS_PORT = 53;

/**
 * The program serves a Corefile of its own where it has none, on port 53 of all addresses: an embedding program never means that.
 * @throws ConfigurationError
 */
async function requireSoundCorefile(source: CorefileSource, options: ConfigurationOptions): Promise<void> {
  await readConfiguration(source, options);
  const { corefile, diagnostics } = await inspectConfiguration(source, options);
  if (corefile.blocks.length > 0) return;
  throw new ConfigurationError(
    diagnostics,
    `${source.file}: there is no server block, so there is nothing to serve`,
  );
}

async function registryOf(options: CreateServerOptions, folder: string): Promise<PluginRegistry> {
  const { pluginConfig, plugins = [], pluginTimeout: budget = DEFAULT_TIME_BUDGET } = options;
  const builtIn = await builtInPlugins();
  let entries: readonly PluginEntry[] = builtIn;
  if (pluginConfig !== undefined) entries = readPluginList(pluginConfig, nodeHost, builtIn, false) ?? builtIn;
  const objects = new Map<string, PluginDefinition<unknown>>();
  for (const plugin of plugins) {
    const { entry, place, definition } = toEntry(plugin, folder);
    if (definition === undefined) objects.delete(entry.name);
    else objects.set(entry.name, isolated(definition, budget));
    entries = withPlugin(entries, entry, place);
  }
  const load = async (entry: PluginEntry): Promise<unknown> =>
    objects.get(entry.name) ?? importBuiltIn(entry);
  return new PluginRegistry(entries, { load, budget });
}

interface ToAdd {
  readonly entry: PluginEntry;
  readonly place: PluginPlace | undefined;
  readonly definition?: PluginDefinition<unknown>;
}

function toEntry(plugin: PluginToAdd, folder: string): ToAdd {
  if (typeof plugin === "string") {
    const added = parseAddedPlugin(plugin);
    if (added === undefined)
      throw new PluginListError(
        `createServer: expected name:module in plugins, found ${JSON.stringify(plugin)}`,
      );
    const { name, module, place } = added;
    return {
      entry: { name, module, external: { from: folder, declaredBy: "createServer" }, isPinned: true },
      place,
    };
  }
  const { plugin: definition, before, after }: PlacedDefinition = "plugin" in plugin ? plugin : { plugin };
  const { name } = definition;
  const entry = { name, module: "an object given to createServer", isPinned: true, isObject: true };
  if (before !== undefined && after !== undefined)
    throw new PluginListError(`createServer: the plugin "${name}" is to be both before and after another`);
  if (before !== undefined) return { entry, place: { relation: "before", name: before }, definition };
  if (after !== undefined) return { entry, place: { relation: "after", name: after }, definition };
  return { entry, place: undefined, definition };
}
