/** The list of plugins: the program's own or that of a `plugin.cfg`, and the added ones. */
import { dirname, resolve } from "node:path";
import { type CorefileHost, describeNoText } from "../../corefile/host.ts";
import { nearestWord } from "../../lib/text/nearest-word.ts";
import { type PluginEntry, PluginListError, parsePluginList } from "./plugin-registry.ts";

/** A plugin to add, and where. */
export interface AddedPlugin {
  readonly name: string;
  /** A path to a `.ts` or `.js` file, or an npm package. */
  readonly module: string;
  readonly place: PluginPlace | undefined;
}

export interface PluginPlace {
  readonly relation: "before" | "after";
  /** The neighbour's name. */
  readonly name: string;
}

/** The neighbour of an added plugin does not exist; the message is one line. */
export class PluginPlaceError extends Error {
  override readonly name = "PluginPlaceError";
  readonly plugin: string;
  readonly neighbour: string;
  /** The existing name nearest to the neighbour's. */
  readonly suggestion: string | undefined;

  constructor(plugin: string, neighbour: string, suggestion: string | undefined) {
    super(
      `cannot place the plugin "${plugin}": there is no plugin "${neighbour}"${suggestion === undefined ? "" : `; did you mean "${suggestion}"?`}`,
    );
    this.plugin = plugin;
    this.neighbour = neighbour;
    this.suggestion = suggestion;
  }
}

/** By default an added plugin goes in front of the first plugin that answers from its own data. */
const USUAL_PLACE = "hosts";

/**
 * `name:module`, optionally followed by `@before=NAME` or `@after=NAME`.
 * @returns `undefined` for a text of another form
 */
export function parseAddedPlugin(text: string): AddedPlugin | undefined {
  const match = /^([^\s:]+):(.+?)(?:@(before|after)=([^\s@=]+))?$/.exec(text);
  const [, name, module, relation, neighbour] = match ?? [];
  if (name === undefined || module === undefined) return undefined;
  if (neighbour === undefined) {
    // A misspelt place would otherwise be read as the end of a path.
    return /@[a-z]*=[^/]*$/i.test(module) ? undefined : { name, module, place: undefined };
  }
  return { name, module, place: { relation: relation === "before" ? "before" : "after", name: neighbour } };
}

/**
 * The list with one more plugin. A plugin of the same name is replaced.
 * @throws PluginPlaceError
 */
export function withPlugin(
  entries: readonly PluginEntry[],
  entry: PluginEntry,
  place: PluginPlace | undefined,
): PluginEntry[] {
  if (place === undefined && entries.some(({ name }) => name === entry.name))
    return entries.map((other) => (other.name === entry.name ? entry : other));
  const others = entries.filter(({ name }) => name !== entry.name);
  return others.toSpliced(indexFor(place, others, entry.name), 0, entry);
}

function indexFor(place: PluginPlace | undefined, entries: readonly PluginEntry[], name: string): number {
  const indexOf = (wanted: string): number => entries.findIndex((other) => other.name === wanted);
  if (place === undefined) return indexOf(USUAL_PLACE) === -1 ? entries.length : indexOf(USUAL_PLACE);
  const index = indexOf(place.name);
  if (index !== -1) return place.relation === "before" ? index : index + 1;
  const names = entries.map((other) => other.name);
  throw new PluginPlaceError(name, place.name, nearestWord(place.name, names));
}

/**
 * Reads a file of CoreDNS's `plugin.cfg` form.
 * @param optional whether the file may be missing
 * @returns `undefined` if an optional file is missing
 * @throws PluginListError
 */
export function readPluginList(
  file: string,
  host: CorefileHost,
  builtIn: readonly PluginEntry[],
  optional: boolean,
): PluginEntry[] | undefined {
  const content = host.readFile(file);
  if (content.kind === "missing" && optional) return undefined;
  if (content.kind !== "text")
    throw new PluginListError(`cannot read the list of plugins ${file}: ${describeNoText(content)}`);
  const modules = new Set(builtIn.map(({ module }) => module));
  const external = { from: resolve(dirname(file)), declaredBy: file };
  return parsePluginList(content.text, file).map((entry) =>
    modules.has(entry.module) ? entry : { ...entry, external },
  );
}
