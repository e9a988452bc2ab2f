/** What the word at the cursor means. */

import { type Hover, MarkupKind } from "vscode-languageserver/node";
import type { TextDocument } from "vscode-languageserver-textdocument";
import type { CorefileHost } from "../../corefile/host.ts";
import type { PluginRegistry } from "../../server/configuration/plugin-registry.ts";
import { nameOf } from "./buffers.ts";
import { definitionOf, withAdded } from "./completion.ts";
import { type CursorPlace, cursorPlace, roleOf, snippetsOf } from "./cursor.ts";
import { optionHelp, pluginHelp } from "./plugin-pages.ts";

export async function hoverAt(
  document: TextDocument,
  offset: number,
  registry: PluginRegistry,
  host: CorefileHost,
): Promise<Hover | undefined> {
  const text = document.getText();
  // The word that begins at the offset counts as well.
  const place = cursorPlace(text, Math.min(offset + 1, text.length));
  if (place?.word === undefined) return undefined;
  const file = nameOf(document);
  const value = await helpAt(place, text, file, withAdded(text, file, registry, host));
  if (value === undefined) return undefined;
  const range = { start: document.positionAt(place.word.start), end: document.positionAt(place.word.end) };
  return { contents: { kind: MarkupKind.Markdown, value }, range };
}

async function helpAt(
  place: CursorPlace,
  text: string,
  file: string,
  registry: PluginRegistry,
): Promise<string | undefined> {
  const { before, word } = place;
  const [first] = before;
  const role = roleOf(place);
  if (word === undefined) return undefined;
  if (first?.text === "import" && before.length === 1) {
    const snippet = snippetsOf(text, file).find(({ name }) => name === word.text);
    return snippet === undefined ? undefined : `\`\`\`corefile\n${snippet.text}\n\`\`\``;
  }
  if (word.text === "import" && first === undefined && role.kind !== "option") return IMPORT;
  if (role.kind === "option" && place.blocks.length === 2) {
    // The values of an option are explained with it.
    const option = first?.text ?? word.text;
    return (await optionOf(role.directive, option, registry)) ?? undefined;
  }
  if (role.kind === "directive" || (role.kind === "top" && !/(^|[\\/])Corefile[^\\/]*$/.test(file)))
    return pluginOf(first?.text ?? word.text, registry);
  return undefined;
}

const IMPORT =
  "`import` **SNIPPET**|**FILE**|**PATTERN** [**ARGS...**]\n\nInserts a snippet, a file, or all files that match a pattern. `{args[0]}` in the text stands for the first argument.";

async function pluginOf(name: string, registry: PluginRegistry): Promise<string | undefined> {
  const entry = registry.entries.find((each) => each.name === name);
  const page = entry === undefined || entry.external !== undefined ? undefined : pluginHelp(entry.module);
  if (page !== undefined) return page;
  const definition = await definitionOf(name, registry);
  if (definition === undefined) return undefined;
  const { usage, options } = definition.config.description;
  const block = options.map((option) => `    ${`${option.name} ${option.usage}`.trimEnd()}\n`).join("");
  const syntax = `${`${name} ${usage}`.trimEnd()}${block === "" ? "" : ` {\n${block}}`}`;
  return `**${name}**: ${definition.summary}\n\n\`\`\`corefile\n${syntax}\n\`\`\``;
}

async function optionOf(
  directive: string,
  name: string,
  registry: PluginRegistry,
): Promise<string | undefined> {
  const entry = registry.entries.find((each) => each.name === directive);
  const help =
    entry === undefined || entry.external !== undefined ? undefined : optionHelp(entry.module, name);
  if (help !== undefined) return help;
  const definition = await definitionOf(directive, registry);
  const option = definition?.config.description.options.find((each) => each.name === name);
  return option === undefined
    ? undefined
    : `\`\`\`corefile\n${`${option.name} ${option.usage}`.trimEnd()}\n\`\`\``;
}
