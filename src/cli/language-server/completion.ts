/** The words that can stand at the cursor. */
import { dirname, isAbsolute, join } from "node:path";
import {
  type CompletionItem,
  CompletionItemKind,
  InsertTextFormat,
  MarkupKind,
} from "vscode-languageserver/node";
import type { TextDocument } from "vscode-languageserver-textdocument";
import { DiagnosticSink } from "../../corefile/diagnostic.ts";
import type { CorefileHost } from "../../corefile/host.ts";
import { parseCorefile } from "../../corefile/parser.ts";
import type { PluginDefinition } from "../../plugin/contract/define-plugin.ts";
import { registryFor } from "../../server/configuration/global-options.ts";
import { PluginLoadError, type PluginRegistry } from "../../server/configuration/plugin-registry.ts";
import { nameOf } from "./buffers.ts";
import { type CursorPlace, cursorPlace, roleOf, snippetsOf } from "./cursor.ts";
import { optionHelp, pluginHelp } from "./plugin-pages.ts";

/** What {@link documentationOf} needs to find the documentation later. */
interface ItemData {
  readonly plugin: string;
  readonly module: string;
  readonly option?: string;
}

export async function completionsAt(
  document: TextDocument,
  offset: number,
  registry: PluginRegistry,
  host: CorefileHost,
): Promise<CompletionItem[]> {
  const text = document.getText();
  const place = cursorPlace(text, offset);
  if (place === undefined || place.word?.quoted === true) return [];
  const file = nameOf(document);
  const words = await wordsAt(place, text, file, withAdded(text, file, registry, host), host);
  const start = place.word?.start ?? offset;
  const range = { start: document.positionAt(start), end: document.positionAt(place.word?.end ?? offset) };
  return words.map(({ insertText, ...item }) => ({
    ...item,
    textEdit: { range, newText: insertText ?? item.label },
  }));
}

async function wordsAt(
  place: CursorPlace,
  text: string,
  file: string,
  registry: PluginRegistry,
  host: CorefileHost,
): Promise<CompletionItem[]> {
  const { before } = place;
  const [first] = before;
  const role = roleOf(place);
  if (first?.text === "import" && role.kind !== "option")
    return before.length === 1 ? importable(text, file, place.word?.text ?? "", host) : [];
  if (role.kind === "top") return first === undefined ? topWords(file, registry) : [];
  if (role.kind === "global")
    return first === undefined
      ? [{ label: "plugin", kind: CompletionItemKind.Keyword, detail: "plugin NAME MODULE" }]
      : [];
  if (role.kind === "directive") {
    if (first === undefined) return [IMPORT, ...directives(registry)];
    const definition = await definitionOf(first.text, registry);
    return valueItems(definition?.config.description, before.length - 1);
  }
  const definition = await definitionOf(role.directive, registry);
  const options = definition?.config.description.options ?? [];
  // Deeper blocks have a grammar of their own.
  if (place.blocks.length > 2) return [];
  if (first === undefined)
    return options.map(({ name, usage }) => optionItem(role.directive, registry, name, usage));
  return valueItems(
    options.find(({ name }) => name === first.text),
    before.length - 1,
  );
}

const IMPORT: CompletionItem = {
  label: "import",
  kind: CompletionItemKind.Keyword,
  detail: "import SNIPPET|FILE|PATTERN [ARGS...]",
};

function topWords(file: string, registry: PluginRegistry): CompletionItem[] {
  const block: CompletionItem = {
    label: "server block",
    kind: CompletionItemKind.Snippet,
    detail: "ZONE:PORT { ... }",
    insertText: `${tabStop(1, ".")}:${tabStop(2, "53")} {\n    $0\n}`,
    insertTextFormat: InsertTextFormat.Snippet,
  };
  const snippet: CompletionItem = {
    label: "snippet",
    kind: CompletionItemKind.Snippet,
    detail: "(NAME) { ... }",
    insertText: `(${tabStop(1, "name")}) {\n    $0\n}`,
    insertTextFormat: InsertTextFormat.Snippet,
  };
  // A file with another name may be a part that a server block imports.
  const isPart = !/(^|[\\/])Corefile[^\\/]*$/.test(file);
  return [block, snippet, IMPORT, ...(isPart ? directives(registry) : [])];
}

/** A place that the editor visits after inserting the text. */
function tabStop(number: number, text: string): string {
  return `\${${number}:${text}}`;
}

function directives({ entries }: PluginRegistry): CompletionItem[] {
  return entries.map(({ name, module, external }) => ({
    label: name,
    kind: CompletionItemKind.Keyword,
    ...(external === undefined ? { data: { plugin: name, module } satisfies ItemData } : { detail: module }),
  }));
}

function optionItem(
  directive: string,
  registry: PluginRegistry,
  name: string,
  usage: string,
): CompletionItem {
  const entry = registry.entries.find((each) => each.name === directive);
  return {
    label: name,
    kind: CompletionItemKind.Property,
    detail: `${name} ${usage}`.trimEnd(),
    ...(entry !== undefined &&
      entry.external === undefined && {
        data: { plugin: directive, module: entry.module, option: name } satisfies ItemData,
      }),
  };
}

function valueItems(
  described: { readonly usage: string; readonly words?: readonly (readonly string[])[] } | undefined,
  index: number,
): CompletionItem[] {
  const { usage = "", words = [] } = described ?? {};
  const repeats = /\.\.\.\]?$/.test(usage);
  const list = words[index] ?? (repeats ? words.at(-1) : undefined) ?? [];
  return list.map((label) => ({ label, kind: CompletionItemKind.EnumMember, detail: usage }));
}

/** Snippets of the text, and files beside it. */
function importable(text: string, file: string, typed: string, host: CorefileHost): CompletionItem[] {
  const snippets = snippetsOf(text, file).map(({ name }) => ({
    label: name,
    kind: CompletionItemKind.Reference,
    detail: "snippet",
  }));
  const folder = typed.includes("/") ? typed.slice(0, typed.lastIndexOf("/") + 1) : "";
  const path = isAbsolute(folder) ? folder : join(dirname(file), folder);
  const files = (host.list(path) ?? []).filter((name) => !name.startsWith(".") && join(path, name) !== file);
  return [
    ...snippets,
    ...files.sort().map((name) => ({ label: `${folder}${name}`, kind: CompletionItemKind.File })),
  ];
}

/** With the plugins that the Corefile itself adds. */
export function withAdded(
  text: string,
  file: string,
  registry: PluginRegistry,
  host: CorefileHost,
): PluginRegistry {
  if (!/^\s*plugin\s/m.test(text)) return registry;
  return registryFor(parseCorefile(text, { file, host }).corefile, registry, new DiagnosticSink());
}

export async function definitionOf(
  name: string,
  registry: PluginRegistry,
): Promise<PluginDefinition<unknown> | undefined> {
  if (!registry.names.includes(name)) return undefined;
  try {
    return await registry.definition(name);
  } catch (error) {
    // The check reports it.
    if (error instanceof PluginLoadError) return undefined;
    throw error;
  }
}

/** The documentation of an item, which is read when the editor shows it. */
export function documentationOf({ data }: CompletionItem): Partial<CompletionItem> {
  if (!isItemData(data)) return {};
  const value = data.option === undefined ? pluginHelp(data.module) : optionHelp(data.module, data.option);
  return value === undefined ? {} : { documentation: { kind: MarkupKind.Markdown, value } };
}

function isItemData(data: unknown): data is ItemData {
  return typeof data === "object" && data !== null && "plugin" in data && "module" in data;
}
