/** The global options of a Corefile: `plugin NAME MODULE [before NAME|after NAME]` adds a plugin for this configuration. */
import { dirname, resolve } from "node:path";
import type { DiagnosticSink } from "../../corefile/diagnostic.ts";
import type { Token } from "../../corefile/tokens.ts";
import type { Corefile, Directive } from "../../corefile/tree.ts";
import { type PluginPlace, PluginPlaceError, withPlugin } from "./plugin-list.ts";
import type { PluginEntry, PluginRegistry } from "./plugin-registry.ts";

const SYNTAX = "plugin NAME MODULE [before NAME|after NAME]";

/** The plugins of this Corefile. Faults go to `report`, and the faulty lines are left out. */
export function registryFor(
  { globalOptions }: Corefile,
  registry: PluginRegistry,
  report: DiagnosticSink,
): PluginRegistry {
  if (globalOptions.length === 0) return registry;
  let { entries } = registry;
  const seen = new Map<string, Token>();
  for (const option of globalOptions) {
    const added = readOption(option, report);
    if (added === undefined) continue;
    const { name, entry, place } = added;
    if (seen.has(entry.name)) {
      report.error("GLOBAL_OPTION_TWICE", name.span, `the plugin '${entry.name}' is added twice`);
      continue;
    }
    seen.set(entry.name, name);
    // A module that the program's caller pinned cannot be replaced by the Corefile.
    if (entries.some((other) => other.name === entry.name && other.isPinned === true)) continue;
    entries = placed(entries, entry, place, option, report);
  }
  return registry.withEntries(entries);
}

interface ReadOption {
  readonly name: Token;
  readonly entry: PluginEntry;
  readonly place: PluginPlace | undefined;
}

function readOption(
  { name: option, args, block }: Directive,
  report: DiagnosticSink,
): ReadOption | undefined {
  const refuse = (at: Token, message: string): undefined => {
    report.error("GLOBAL_OPTION_SYNTAX", at.span, message, { expected: SYNTAX });
    return undefined;
  };
  if (option.text !== "plugin") return refuse(option, `unknown global option '${option.text}'`);
  if (block !== undefined) return refuse(option, "the global option 'plugin' has no block");
  const [name, module, relation, neighbour] = args;
  if (name === undefined || module === undefined || args.length === 3 || args.length > 4)
    return refuse(
      option,
      `Wrong argument count or unexpected line ending after '${(args.at(-1) ?? option).text}'`,
    );
  if (!/^[\w-]+$/.test(name.text)) return refuse(name, `'${name.text}' cannot be the name of a plugin`);
  if (module.text === "") return refuse(module, "the module has no name");
  const { file, line } = module.span;
  const external = { from: resolve(dirname(file)), declaredBy: `${file}:${line}` };
  const entry = { name: name.text, module: module.text, external };
  if (relation === undefined || neighbour === undefined) return { name, entry, place: undefined };
  if (relation.text !== "before" && relation.text !== "after")
    return refuse(relation, `'${relation.text}' is not a position`);
  return { name, entry, place: { relation: relation.text, name: neighbour.text } };
}

function placed(
  entries: readonly PluginEntry[],
  entry: PluginEntry,
  place: PluginPlace | undefined,
  { args }: Directive,
  report: DiagnosticSink,
): readonly PluginEntry[] {
  try {
    return withPlugin(entries, entry, place);
  } catch (error) {
    if (!(error instanceof PluginPlaceError)) throw error;
    const at = args.at(-1);
    if (at !== undefined)
      report.error("GLOBAL_OPTION_PLACE", at.span, `there is no plugin '${error.neighbour}'`, {
        suggestion: error.suggestion,
      });
    return withPlugin(entries, entry, undefined);
  }
}
