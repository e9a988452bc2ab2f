/** The list of plugins: the program's own, or that of a `plugin.cfg`, and what is added to it. */
import { dirname, resolve } from "node:path";
import { type CorefileHost, describeNoText } from "../../corefile/host.ts";
import { nearestWord } from "../../lib/text/nearest-word.ts";
import { type PluginEntry, PluginListError, parsePluginList } from "./plugin-registry.ts";

/** A plugin to add, and where. */
export interface AddedPlugin {
  readonly name: string;
  /** A path to a `.ts` or `.js` file, or a package of npm. */
  readonly module: string;
  readonly place: PluginPlace | undefined;
}

export interface PluginPlace {
  readonly relation: "before" | "after";
  /** Of the neighbour. */
  readonly name: string;
}

/** A plugin that is to stand beside one that is not there; the message is one line. */
export class PluginPlaceError extends Error {
  override readonly name = "PluginPlaceError";
  readonly plugin: string;
  readonly neighbour: string;
  /** The name nearest to that of the neighbour. */
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

/** Added plugins stand in front of the first one that answers from data of its own, unless they say otherwise. */
const USUAL_PLACE = "hosts";

/**
 * `name:module`, with `@before=NAME` or `@after=NAME` behind it or not.
 * @returns `undefined` for a text of another form
 */
export function parseAddedPlugin(text: string): AddedPlugin | undefined {
  const match = /^([^\s:]+):(.+?)(?:@(before|after)=([^\s@=]+))?$/.exec(text);
  const [, name, module, relation, neighbour] = match ?? [];
  if (name === undefined || module === undefined) return undefined;
  if (neighbour === undefined) {
    // A place that is misspelt would otherwise be the end of a path.
    return /@[a-z]*=[^/]*$/i.test(module) ? undefined : { name, module, place: undefined };
  }
  return { name, module, place: { relation: relation === "before" ? "before" : "after", name: neighbour } };
}

/**
 * The list with one more plugin. One with the name of a plugin that is there takes its place.
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
 * The list in a file of CoreDNS's form.
 * @param optional whether the file may be missing
 * @returns `undefined` where it is missing and may be
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
