/** Which plugins there are: those of the program, or of a `plugin.cfg`, and those that the command line adds. */
import { dirname, join, resolve } from "node:path";
import { nodeHost } from "../corefile/node-host.ts";
import { formatGoDuration, parseGoDuration } from "../lib/duration.ts";
import { nearestWord } from "../lib/nearest-word.ts";
import {
  builtInPlugins,
  type PluginEntry,
  PluginRegistry,
  parsePluginList,
} from "../server/plugin-registry.ts";
import { DEFAULT_TIME_BUDGET } from "../server/time-budget.ts";
import { unavailableDirectives } from "../server/unavailable-directives.ts";
import { FlagError, type FlagRow } from "./flag-table.ts";

export interface PluginFlags {
  /** File in place of the list of the program; empty for the one beside the Corefile, if there is one. */
  pluginCfg: string;
  readonly plugins: AddedPlugin[];
  /** Milliseconds that external plugins have for a query; 0 for no bound. */
  pluginTimeout: number;
}

export interface AddedPlugin {
  readonly name: string;
  readonly module: string;
  readonly place: { readonly relation: "before" | "after"; readonly name: string } | undefined;
}

export function defaultPluginFlags(): PluginFlags {
  return { pluginCfg: "", plugins: [], pluginTimeout: DEFAULT_TIME_BUDGET };
}

export const PLUGIN_FLAGS: readonly FlagRow<PluginFlags>[] = [
  {
    names: ["plugin"],
    value: "NAME:MODULE",
    about:
      "add a plugin: a .ts or .js file or an npm package; @before=NAME or @after=NAME behind it says where",
    apply: (flags, value) => {
      flags.plugins.push(parseAddedPlugin(value));
    },
  },
  {
    names: ["plugin-cfg"],
    value: "FILE",
    about:
      "list of plugins, in chain order (default: plugin.cfg beside the Corefile, else the program's own)",
    apply: (flags, value) => {
      flags.pluginCfg = value;
    },
  },
  {
    names: ["plugin-timeout"],
    value: "DURATION",
    about: `time that an added plugin has for a query, 0s for no bound (default ${formatGoDuration(DEFAULT_TIME_BUDGET)})`,
    apply: (flags, value) => {
      const milliseconds = parseGoDuration(value);
      if (milliseconds === undefined || milliseconds < 0)
        throw new FlagError(
          `invalid value "${value}" for flag -plugin-timeout: a duration is such as 5s`,
          2,
          true,
        );
      flags.pluginTimeout = milliseconds;
    },
  },
];

/** Added plugins stand in front of the first one that answers from data of its own, unless they say otherwise. */
const USUAL_PLACE = "hosts";

/**
 * @param corefile path of the Corefile, `undefined` for one that has none
 * @throws FlagError, PluginListError
 */
export async function pluginRegistry(
  flags: PluginFlags,
  corefile: string | undefined,
): Promise<PluginRegistry> {
  const builtIn = await builtInPlugins();
  const entries = listedPlugins(flags, corefile, builtIn) ?? [...builtIn];
  for (const added of flags.plugins) add(added, entries, flags.pluginTimeout);
  return new PluginRegistry(entries);
}

/** One line a plugin, sorted; those that do not come with the program with where they come from. */
export function pluginLines({ entries }: PluginRegistry): string[] {
  return entries
    .map(({ name, module, external }) =>
      external === undefined ? name : `${name} (${module} in ${external.from})`,
    )
    .sort();
}

function listedPlugins(
  flags: PluginFlags,
  corefile: string | undefined,
  builtIn: readonly PluginEntry[],
): PluginEntry[] | undefined {
  const beside = corefile === undefined ? undefined : join(dirname(corefile), "plugin.cfg");
  const file = flags.pluginCfg === "" ? beside : flags.pluginCfg;
  if (file === undefined) return undefined;
  const content = nodeHost.readFile(file);
  if (content.kind === "missing" && flags.pluginCfg === "") return undefined;
  if (content.kind !== "text") {
    const reasons = { missing: "no such file", directory: "is a directory" };
    const reason = content.kind === "unreadable" ? content.reason : reasons[content.kind];
    throw new FlagError(`cannot read the list of plugins ${file}: ${reason}`, 2, false);
  }
  if (content.text.includes("\0"))
    throw new FlagError(`cannot read the list of plugins ${file}: is not a text file`, 2, false);
  const modules = new Set(builtIn.map(({ module }) => module));
  const external = { from: resolve(dirname(file)), budget: flags.pluginTimeout };
  return parsePluginList(content.text, file).flatMap((entry) => {
    if (modules.has(entry.module)) return [entry];
    // CoreDNS's own list is taken as it is: what is not there yet says so when a Corefile uses it.
    return unavailableDirectives.has(entry.module) ? [] : [{ ...entry, external }];
  });
}

/** @throws FlagError */
function parseAddedPlugin(value: string): AddedPlugin {
  const match = /^([^\s:]+):(.+?)(?:@(before|after)=([^\s@=]+))?$/.exec(value);
  const [, name, module, relation, neighbour] = match ?? [];
  if (name === undefined || module === undefined)
    throw new FlagError(`invalid value "${value}" for flag -plugin: expected name:module`, 2, true);
  if (neighbour === undefined) return { name, module, place: undefined };
  return { name, module, place: { relation: relation === "before" ? "before" : "after", name: neighbour } };
}

/** A plugin with the name of one that is there takes its place. */
function add({ name, module, place }: AddedPlugin, entries: PluginEntry[], budget: number): void {
  const entry = { name, module, external: { from: process.cwd(), budget } };
  const same = entries.findIndex((other) => other.name === name);
  if (same !== -1 && place === undefined) {
    entries[same] = entry;
    return;
  }
  if (same !== -1) entries.splice(same, 1);
  entries.splice(indexFor(place, entries, name), 0, entry);
}

function indexFor(place: AddedPlugin["place"], entries: readonly PluginEntry[], name: string): number {
  const indexOf = (wanted: string): number => entries.findIndex((other) => other.name === wanted);
  if (place === undefined) return indexOf(USUAL_PLACE) === -1 ? entries.length : indexOf(USUAL_PLACE);
  const index = indexOf(place.name);
  if (index !== -1) return place.relation === "before" ? index : index + 1;
  const near = nearestWord(
    place.name,
    entries.map((other) => other.name),
  );
  const hint = near === undefined ? "" : `; did you mean "${near}"?`;
  throw new FlagError(
    `cannot place the plugin "${name}": there is no plugin "${place.name}"${hint}`,
    2,
    false,
  );
}
