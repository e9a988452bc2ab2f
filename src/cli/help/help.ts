/** `portolan help`: shows the usage, and the pages of commands and plugins, in the terminal. */
import { readFileSync } from "node:fs";
import { documentationFile, programFile } from "../../lib/files/program-files.ts";
import { nearestWord } from "../../lib/text/nearest-word.ts";
import type { PluginDefinition } from "../../plugin/contract/define-plugin.ts";
import {
  PluginListError,
  PluginLoadError,
  type PluginRegistry,
} from "../../server/configuration/plugin-registry.ts";
import type { CommandEntry } from "../command-entry.ts";
import { FlagError, type FlagRow, flagLines, parseFlags, switchRow } from "../flag-table.ts";
import { usage } from "../flags.ts";
import { completeRegistry, defaultPluginFlags, PLUGIN_FLAGS, type PluginFlags } from "../plugin-list.ts";
import { fitted, terminalWidth, wantsColour, wrapText } from "../terminal.ts";
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

/** @returns the exit code: 0, or 2 for an unknown name */
export async function help(argv: readonly string[], commands: readonly CommandEntry[]): Promise<number> {
  try {
    const flags: HelpFlags = { ...defaultPluginFlags(), help: false };
    const words = parseFlags(HELP_FLAGS, flags, argv, true);
    // `help plugin explain` is about the plugin, `help explain` about the command.
    const ofPlugin = words[0] === "plugin" && words.length > 1;
    const [name, ...others] = flags.help ? [] : words.slice(ofPlugin ? 1 : 0);
    if (others.length > 0) throw new FlagError(`help takes one name, not also ${others.join(" ")}`, 2, false);
    const registry = await completeRegistry(flags, "");
    const entry = ofPlugin ? undefined : commands.find((command) => command.name === name);
    if (name === undefined) process.stdout.write(overview(registry, commands));
    else if (entry !== undefined) await explainCommand(entry, commands, registry);
    else if (name === "Corefile") process.stdout.write(rendered(readPage("corefile.md")));
    else process.stdout.write(await pluginPage(name, registry, ofPlugin ? [] : commands));
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
  const plugins = wrapText(names, terminalWidth() - 2).map((line) => `  ${line}`);
  const heading = fitted('"portolan help NAME" explains a command, the Corefile, or a plugin:');
  return `${usage("portolan", commands)}\n${heading}\n${plugins.join("\n")}\n`;
}

async function explainCommand(
  entry: CommandEntry,
  commands: readonly CommandEntry[],
  registry: PluginRegistry,
): Promise<void> {
  if (entry.page === undefined) {
    await (await entry.load())(["-help"], commands);
    return;
  }
  const flags = fitted(flagLines(await entry.flags()).join("\n"));
  const codes = fitted(`Exit codes: ${entry.exitCodes}.`);
  const other = registry.names.includes(entry.name)
    ? `\nThere is a plugin of this name, too: portolan help plugin ${entry.name}\n`
    : "";
  process.stdout.write(`${rendered(readPage(entry.page))}\nFlags\n\n${flags}\n\n${codes}\n${other}`);
}

async function pluginPage(
  name: string,
  registry: PluginRegistry,
  commands: readonly CommandEntry[],
): Promise<string> {
  const entry = registry.entries.find((other) => other.name === name);
  if (entry === undefined) {
    const known = [...registry.names, ...commands.map((command) => command.name), "Corefile"];
    const near = nearestWord(name, known);
    const hint = near === undefined ? ' ("portolan help" lists them)' : `; did you mean "${near}"?`;
    throw new FlagError(`there is no command and no plugin "${name}"${hint}`, 2, false);
  }
  if (entry.external !== undefined) return described(await registry.definition(name));
  return rendered(readFileSync(programFile(`plugins/${entry.module}/README.md`), "utf8"));
}

/** @param path below `docs/` */
function readPage(path: string): string {
  return readFileSync(documentationFile(path), "utf8");
}

function rendered(page: string): string {
  return renderMarkdown(page, wantsColour(process.stdout, process.env), terminalWidth());
}

/** The page of a plugin without a README, made from its definition. */
function described({ name, summary, config }: PluginDefinition<unknown>): string {
  const { usage: args, options } = config.description;
  const block = options.map((option) => `        ${`${option.name} ${option.usage}`.trimEnd()}\n`).join("");
  const heading = `${name} ${args}`.trimEnd();
  return `${name}\n\n${summary}\n\nSyntax\n\n    ${heading}${block === "" ? "\n" : ` {\n${block}    }\n`}`;
}
