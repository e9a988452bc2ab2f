/** `portolan help`: the usage, and the README of a plugin in the terminal. */
import { readFileSync } from "node:fs";
import { nearestWord } from "../../lib/nearest-word.ts";
import { programFile } from "../../lib/program-files.ts";
import type { PluginDefinition } from "../../plugin/define-plugin.ts";
import {
  PluginListError,
  PluginLoadError,
  type PluginRegistry,
} from "../../server/configuration/plugin-registry.ts";
import type { CommandEntry } from "../command-entry.ts";
import { FlagError, type FlagRow, parseFlags, switchRow } from "../flag-table.ts";
import { usage } from "../flags.ts";
import { completeRegistry, defaultPluginFlags, PLUGIN_FLAGS, type PluginFlags } from "../plugin-list.ts";
import { wantsColour } from "../terminal.ts";
import { renderMarkdown } from "./markdown.ts";

interface HelpFlags extends PluginFlags {
  help: boolean;
}

export const HELP_FLAGS: readonly FlagRow<HelpFlags>[] = [
  ...PLUGIN_FLAGS,
  switchRow(["help", "h"], "list commands and plugins", (flags, on) => {
    flags.help = on;
  }),
];

/** @returns the exit code: 0, or 2 where there is no such plugin */
export async function help(argv: readonly string[], commands: readonly CommandEntry[]): Promise<number> {
  try {
    const flags: HelpFlags = { ...defaultPluginFlags(), help: false };
    const words = parseFlags(HELP_FLAGS, flags, argv, true);
    const [name, ...others] = flags.help ? [] : words;
    if (others.length > 0) throw new FlagError(`help takes one name, not also ${others.join(" ")}`, 2, false);
    const registry = await completeRegistry(flags, "");
    process.stdout.write(name === undefined ? overview(registry, commands) : await page(name, registry));
    return 0;
  } catch (error) {
    const isExpected =
      error instanceof FlagError || error instanceof PluginListError || error instanceof PluginLoadError;
    if (!isExpected) throw error;
    process.stderr.write(`${error.message}\n`);
    return 2;
  }
}

function overview(registry: PluginRegistry, commands: readonly CommandEntry[]): string {
  const names = [...registry.names].sort().join(" ");
  return `${usage("portolan", commands)}\n"portolan help PLUGIN" explains a plugin:\n${wrapped(names, 78)}\n`;
}

async function page(name: string, registry: PluginRegistry): Promise<string> {
  const entry = registry.entries.find((other) => other.name === name);
  if (entry === undefined) {
    const near = nearestWord(name, registry.names);
    const hint = near === undefined ? ' ("portolan help" lists them)' : `; did you mean "${near}"?`;
    throw new FlagError(`there is no plugin "${name}"${hint}`, 2, false);
  }
  if (entry.external !== undefined) return described(await registry.definition(name));
  const readme = programFile(`plugins/${entry.module}/README.md`);
  return renderMarkdown(readFileSync(readme, "utf8"), wantsColour(process.stdout, process.env));
}

/** What the definition of a plugin says, for one that has no README here. */
function described({ name, summary, config }: PluginDefinition<unknown>): string {
  const { usage: args, options } = config.description;
  const block = options.map((option) => `        ${`${option.name} ${option.usage}`.trimEnd()}\n`).join("");
  const heading = `${name} ${args}`.trimEnd();
  return `${name}\n\n${summary}\n\nSyntax\n\n    ${heading}${block === "" ? "\n" : ` {\n${block}    }\n`}`;
}

function wrapped(text: string, width: number): string {
  return text.replaceAll(new RegExp(`(.{1,${width}})(?: |$)`, "g"), "  $1\n").trimEnd();
}
