/** The available plugins, in the order of the chain. Each is loaded when a Corefile names it. */
import { readFile } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { programFile, programModule } from "../../lib/files/program-files.ts";
import { version as thisVersion } from "../../lib/text/version.ts";
import { isInVersionRange, VersionRangeError } from "../../lib/text/version-range.ts";
import { type Clock, SystemClock } from "../../lib/time/clock.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";
import type { PluginDefinition } from "../../plugin/contract/define-plugin.ts";
import { isolated } from "../isolation/isolation.ts";
import { DEFAULT_TIME_BUDGET } from "../isolation/time-budget.ts";
import {
  importFile,
  locateModule,
  ModuleNotFound,
  providePortolanImports,
  stampOf,
} from "./external-modules.ts";

/** Plain data, from which other threads make the same registry. */
export interface PluginEntry {
  /** The directive's name. */
  readonly name: string;
  /** As in `plugin.cfg`. */
  readonly module: string;
  /** Set for an external plugin. */
  readonly external?: {
    /** The folder that the module's path is relative to. */
    readonly from: string;
    /** For people: the file, line or flag that names it. */
    readonly declaredBy: string;
  };
  /** The program's caller chose the module: a Corefile cannot replace it. */
  readonly isPinned?: boolean;
  /** It was passed as an object, so it cannot be sent to other threads. */
  readonly isObject?: boolean;
}

/** A plugin whose module cannot be used. */
export class PluginLoadError extends Error {
  override readonly name = "PluginLoadError";
  readonly plugin: string;
  readonly module: string;

  constructor(entry: PluginEntry, reason: string, cause?: unknown) {
    super(`cannot load plugin "${entry.name}" from "${entry.module}": ${reason}`, { cause });
    this.plugin = entry.name;
    this.module = entry.module;
  }
}

/** A `plugin.cfg` that cannot be used; the message is one line, with the place. */
export class PluginListError extends Error {
  override readonly name = "PluginListError";
}

/** The result of loading a plugin's module. */
interface Loaded {
  readonly definition: PluginDefinition<unknown>;
  /** Of an external plugin: its file, and the stamp of that file when it was loaded. */
  readonly file?: string;
  readonly stamp?: string | undefined;
}

/** The file of an added plugin. */
export interface LoadedFile {
  readonly plugin: string;
  /** Absolute. */
  readonly file: string;
}

/** The loaded modules, shared by all registries of one server. */
class LoadedModules {
  readonly definitions: Map<string, Loaded> = new Map();
  /** By file, including those that failed: timers and servers that they started keep running. */
  readonly files: Map<string, LoadedFile> = new Map();
  /** Distinguishes attempts to load the same file after one has failed. */
  attempt = 0;
}

/** Two lists may have different modules for one name. */
function keyOf({ name, module, external }: PluginEntry): string {
  return JSON.stringify([name, module, external?.from]);
}

/** Milliseconds that the import of a module may take. */
const IMPORT_BOUND = 10_000;

export interface PluginRegistryOptions {
  /** Imports a plugin that comes with the program; a test gives its own. */
  readonly load?: (entry: PluginEntry) => Promise<unknown>;
  /**
   * Milliseconds that an external plugin may spend on a query; 0 for no bound. {@link DEFAULT_TIME_BUDGET} unless
   * given.
   */
  readonly budget?: number;
  /** For the bound of imports; the system clock unless given. */
  readonly clock?: Clock;
}

export class PluginRegistry {
  /** In chain order. */
  readonly entries: readonly PluginEntry[];
  /** Milliseconds that external plugins may spend on a query; 0 for no bound. */
  readonly budget: number;
  readonly #positions: ReadonlyMap<string, number>;
  readonly #options: PluginRegistryOptions;
  #modules = new LoadedModules();

  constructor(entries: readonly PluginEntry[], options: PluginRegistryOptions = {}) {
    this.entries = entries;
    this.budget = options.budget ?? DEFAULT_TIME_BUDGET;
    this.#options = options;
    this.#positions = new Map(entries.map((entry, position) => [entry.name, position]));
  }

  /** The plugins that come with the program. */
  static async builtIn(): Promise<PluginRegistry> {
    return new PluginRegistry(await builtInPlugins());
  }

  /** A registry with another list that shares the loaded modules of this one. */
  withEntries(entries: readonly PluginEntry[]): PluginRegistry {
    const other = new PluginRegistry(entries, this.#options);
    other.#modules = this.#modules;
    return other;
  }

  get names(): readonly string[] {
    return this.entries.map((entry) => entry.name);
  }

  position(name: string): number {
    return this.#positions.get(name) ?? Number.POSITIVE_INFINITY;
  }

  /** Drops external plugins whose files have changed, so that they are loaded anew. */
  refresh(): void {
    this.#modules.attempt++;
    const { definitions } = this.#modules;
    for (const [key, { file, stamp }] of definitions)
      if (file !== undefined && stampOf(file) !== stamp) definitions.delete(key);
  }

  /** A stamp of the loaded external plugins among `names`; it changes when one of them does. */
  stampOf(names: Iterable<string>): string {
    return [...new Set(names)]
      .flatMap((name) => {
        const entry = this.#entry(name);
        const stamp = entry && this.#modules.definitions.get(keyOf(entry))?.stamp;
        return stamp === undefined ? [] : [`${name} ${stamp}`];
      })
      .sort()
      .join("\n");
  }

  /** The files of added plugins that were imported so far. */
  get loadedFiles(): readonly LoadedFile[] {
    return [...this.#modules.files.values()];
  }

  /** @throws PluginLoadError */
  async definition(name: string): Promise<PluginDefinition<unknown>> {
    const entry = this.#entry(name);
    if (entry === undefined) throw new RangeError(`no plugin is called "${name}"`);
    const { definitions } = this.#modules;
    const known = definitions.get(keyOf(entry));
    if (known !== undefined) return known.definition;
    const loaded = await this.#import(entry);
    definitions.set(keyOf(entry), loaded);
    // Loading a plugin blocks the thread, and a reload may load several while queries are answered.
    await nextTurn();
    return loaded.definition;
  }

  /** The definition, where {@link definition} has loaded it. */
  loaded(name: string): PluginDefinition<unknown> | undefined {
    const entry = this.#entry(name);
    return entry && this.#modules.definitions.get(keyOf(entry))?.definition;
  }

  #entry(name: string): PluginEntry | undefined {
    return this.entries[this.position(name)];
  }

  async #import(entry: PluginEntry): Promise<Loaded> {
    const { external } = entry;
    if (external === undefined) {
      const { load = importBuiltIn } = this.#options;
      return { definition: checked(await attempt(entry, () => load(entry)), entry) };
    }
    providePortolanImports();
    const file = await attempt(entry, async () => locateModule(entry.module, external.from));
    const stamp = stampOf(file);
    this.#modules.files.set(file, { plugin: entry.name, file });
    const exported = await attempt(
      entry,
      () => this.#within(importFile(file, `${stamp}-${this.#modules.attempt}`)),
      file,
    );
    return { definition: isolated(checked(exported, entry), this.budget), file, stamp };
  }

  /**
   * A module may wait without end (`await` at its top level), so the import has a time limit. Its timer keeps the
   * process alive.
   */
  async #within(imported: Promise<unknown>): Promise<unknown> {
    const { clock = new SystemClock({ keepAlive: true }) } = this.#options;
    const overrun = Promise.withResolvers<never>();
    const timer = clock.after(IMPORT_BOUND, () =>
      overrun.reject(
        new Error(`it did not load within ${formatGoDuration(IMPORT_BOUND)}: check its top-level await`),
      ),
    );
    try {
      return await Promise.race([imported, overrun.promise]);
    } finally {
      timer.cancel();
    }
  }
}

/** The list of the plugins that come with the program. */
export async function builtInPlugins(): Promise<PluginEntry[]> {
  return parsePluginList(await readFile(programFile("plugins/plugin.cfg"), "utf8"), "plugin.cfg");
}

/** @throws PluginListError */
export function parsePluginList(text: string, file: string): PluginEntry[] {
  const entries = new Map<string, PluginEntry>();
  for (const [index, line] of text.split("\n").entries()) {
    const content = line.replace(/#.*$/, "").trim();
    if (content === "") continue;
    const separator = content.indexOf(":");
    const name = content.slice(0, separator).trim();
    const module = content.slice(separator + 1).trim();
    if (separator < 1 || module === "" || /\s/.test(name))
      throw new PluginListError(
        `${file}:${index + 1}: expected name:module, found ${JSON.stringify(content)}`,
      );
    if (entries.has(name))
      throw new PluginListError(`${file}:${index + 1}: the plugin "${name}" is listed twice`);
    entries.set(name, { name, module });
  }
  return [...entries.values()];
}

async function attempt<R>(entry: PluginEntry, load: () => Promise<R>, file?: string): Promise<R> {
  try {
    return await load();
  } catch (error) {
    const line = file === undefined ? undefined : lineOf(error, file);
    throw new PluginLoadError(entry, reasonOf(error) + (line === undefined ? "" : ` (line ${line})`), error);
  }
}

/** The place in the file that the stack names, if any. */
function lineOf(error: unknown, file: string): string | undefined {
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  // Paths and URLs alike, URLs with the version at the end; other spellings of the same file get no line.
  for (const spelling of [file, pathToFileURL(file).pathname]) {
    const at = stack.indexOf(spelling);
    const [, line] =
      at === -1 ? [] : (/^(?:\?v=[^:\s]*)?:(\d+)/.exec(stack.slice(at + spelling.length)) ?? []);
    if (line !== undefined) return line;
  }
  return undefined;
}

/** The error of a module, or of Node's loader, in one line. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return `it threw ${String(error)}`;
  if (error instanceof ModuleNotFound) return error.message;
  const message = error.message.replaceAll(/\s*\n\s*/g, " ");
  const code = "code" in error ? error.code : undefined;
  if (code === "ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING")
    return "it is TypeScript inside node_modules, which Node does not run: publish it as JavaScript";
  if (/'?portolan(\/\w+)?'? does not provide an export/.test(message))
    return `${message}: perhaps it needs a newer Portolan than ${thisVersion}`;
  return message;
}

/** @throws PluginLoadError */
function checked(exported: unknown, entry: PluginEntry): PluginDefinition<unknown> {
  if (exported === undefined)
    throw new PluginLoadError(
      entry,
      "it has no default export: a plugin ends with export default definePlugin({...})",
    );
  if (!isDefinition(exported))
    throw new PluginLoadError(entry, "its default export is not made by definePlugin");
  const { name, requires } = exported;
  if (requires !== undefined && !isMet(requires, entry))
    throw new PluginLoadError(entry, `it needs Portolan ${requires}, and this is ${thisVersion}`);
  if (name !== entry.name)
    throw new PluginLoadError(entry, `its name is "${name}": list it as ${name}:${entry.module}`);
  return exported;
}

function isMet(requires: string, entry: PluginEntry): boolean {
  try {
    return isInVersionRange(thisVersion, requires);
  } catch (error) {
    if (!(error instanceof VersionRangeError)) throw error;
    throw new PluginLoadError(entry, `its "requires": ${error.message}`);
  }
}

/** Built-in plugins that are too large to load in one turn: their parts, leaves first. */
const PIECES: ReadonlyMap<string, readonly (() => Promise<unknown>)[]> = new Map([
  [
    "kubernetes",
    [
      () => import("../../kubernetes/store/store.ts"),
      () => import("../../kubernetes/answers/cluster-answers.ts"),
      () => import("../../upstream/config/resolv-conf.ts"),
    ],
  ],
]);

/** The default export of a built-in plugin. */
export async function importBuiltIn(entry: PluginEntry): Promise<unknown> {
  for (const piece of PIECES.get(entry.module) ?? []) {
    await piece();
    await nextTurn();
  }
  const loaded: { default?: unknown } = await import(programModule(`plugins/${entry.module}/index`).href);
  return loaded.default;
}

function isDefinition(value: unknown): value is PluginDefinition<unknown> {
  return (
    typeof value === "object" &&
    value !== null &&
    "name" in value &&
    typeof value.name === "string" &&
    "config" in value &&
    typeof value.config === "object" &&
    value.config !== null &&
    "parse" in value.config &&
    typeof value.config.parse === "function" &&
    "description" in value.config &&
    typeof value.config.description === "object" &&
    value.config.description !== null &&
    (!("create" in value) || value.create === undefined || typeof value.create === "function") &&
    (!("requires" in value) || value.requires === undefined || typeof value.requires === "string")
  );
}
