/** The plugins of the program: the built-in list or a `plugin.cfg`, and those that the command line adds. */
import { dirname, join } from "node:path";
import { DiagnosticSink } from "../corefile/diagnostic.ts";
import { nodeHost } from "../corefile/node-host.ts";
import { parseCorefile } from "../corefile/parser.ts";
import { formatGoDuration, parseGoDuration } from "../lib/time/duration.ts";
import { registryFor } from "../server/configuration/global-options.ts";
import {
  type AddedPlugin,
  PluginPlaceError,
  parseAddedPlugin,
  readPluginList,
  withPlugin,
} from "../server/configuration/plugin-list.ts";
import { builtInPlugins, type PluginEntry, PluginRegistry } from "../server/configuration/plugin-registry.ts";
import { DEFAULT_TIME_BUDGET } from "../server/isolation/time-budget.ts";
import { corefilePath } from "./corefile-source.ts";
import { FlagError, type FlagRow } from "./flag-table.ts";

export interface PluginFlags {
  /** Replaces the built-in list; empty for the `plugin.cfg` beside the Corefile, if there is one. */
  pluginCfg: string;
  readonly plugins: AddedPlugin[];
  /** Milliseconds per query for external plugins; 0 for no limit. */
  pluginTimeout: number;
}

export function defaultPluginFlags(): PluginFlags {
  return { pluginCfg: "", plugins: [], pluginTimeout: DEFAULT_TIME_BUDGET };
}

export const PLUGIN_FLAGS: readonly FlagRow<PluginFlags>[] = [
  {
    names: ["plugin"],
    value: "NAME:MODULE",
    about:
      "add a plugin from a .ts or .js file or an npm package; append @before=NAME or @after=NAME for its position",
    apply: (flags, value) => {
      const added = parseAddedPlugin(value);
      if (added === undefined)
        throw new FlagError(
          `invalid value "${value}" for flag -plugin: expected name:module, or name:module@before=OTHER, or name:module@after=OTHER`,
          2,
          true,
        );
      flags.plugins.push(added);
    },
  },
  {
    names: ["plugin-cfg"],
    value: "FILE",
    about:
      "list of plugins in chain order (default: plugin.cfg next to the Corefile, else the built-in list)",
    apply: (flags, value) => {
      flags.pluginCfg = value;
    },
  },
  {
    names: ["plugin-timeout"],
    value: "DURATION",
    about: `time limit of added plugins per query, 0s for none (default ${formatGoDuration(DEFAULT_TIME_BUDGET)})`,
    apply: (flags, value) => {
      const milliseconds = parseGoDuration(value);
      if (milliseconds === undefined || milliseconds < 0)
        throw new FlagError(
          `invalid value "${value}" for flag -plugin-timeout: expected a duration such as 5s`,
          2,
          true,
        );
      flags.pluginTimeout = milliseconds;
    },
  },
];

/**
 * The plugins known before the Corefile is read.
 * @param corefile path of the Corefile, `undefined` if it has none
 * @throws FlagError, PluginListError
 */
export async function pluginRegistry(
  flags: PluginFlags,
  corefile: string | undefined,
): Promise<PluginRegistry> {
  const builtIn = await builtInPlugins();
  let entries = listedPlugins(flags, corefile, builtIn) ?? builtIn;
  const external = { from: process.cwd(), declaredBy: "-plugin" };
  for (const { name, module, place } of flags.plugins) {
    try {
      entries = withPlugin(entries, { name, module, external, isPinned: true }, place);
    } catch (error) {
      if (error instanceof PluginPlaceError) throw new FlagError(error.message, 2, false);
      throw error;
    }
  }
  return new PluginRegistry(entries, { budget: flags.pluginTimeout });
}

/** Like {@link pluginRegistry}, with the plugins that the Corefile adds, as far as it can be read. */
export async function completeRegistry(flags: PluginFlags, conf: string): Promise<PluginRegistry> {
  const path = corefilePath(conf);
  const registry = await pluginRegistry(flags, path);
  const content = path === undefined ? undefined : nodeHost.readFile(path);
  if (path === undefined || content?.kind !== "text") return registry;
  const { corefile } = parseCorefile(content.text, { file: path, host: nodeHost });
  return registryFor(corefile, registry, new DiagnosticSink());
}

/** One line per plugin, in chain order: its name and origin. */
export function pluginLines({ entries }: PluginRegistry): string[] {
  const width = Math.max(0, ...entries.map(({ name }) => name.length));
  return entries.map(({ name, module, external }) => {
    const origin =
      external === undefined ? "built in" : `${module} in ${external.from} (${external.declaredBy})`;
    return `${name.padEnd(width)}  ${origin}`;
  });
}

function listedPlugins(
  flags: PluginFlags,
  corefile: string | undefined,
  builtIn: readonly PluginEntry[],
): readonly PluginEntry[] | undefined {
  if (flags.pluginCfg !== "") return readPluginList(flags.pluginCfg, nodeHost, builtIn, false);
  if (corefile === undefined) return undefined;
  return readPluginList(join(dirname(corefile), "plugin.cfg"), nodeHost, builtIn, true);
}
