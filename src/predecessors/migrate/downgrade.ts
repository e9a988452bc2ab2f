/** Turns a Corefile of this server into one for CoreDNS, of the current or an older version. */
import { TextEditor } from "../../corefile/history/edit-text.ts";
import type { CorefileHost } from "../../corefile/host.ts";
import { parseCorefile } from "../../corefile/parser.ts";
import type { Directive } from "../../corefile/tree.ts";
import { isOwnOption, ONCE_IN_COREDNS, optionSince, pluginSince, wordSince } from "./coredns-words.ts";
import { NEW_DEFAULTS } from "./new-defaults.ts";
import type { Migrated, Notice } from "./notice.ts";
import { isUpTo } from "./versions.ts";

export interface DowngradeOptions {
  readonly file: string;
  readonly host: CorefileHost;
  readonly to: string;
  readonly directives: Iterable<string>;
}

/** Removes everything that the version of CoreDNS does not have. Does not restore what an upgrade replaced. */
export function downgrade(text: string, { file, host, to, directives }: DowngradeOptions): Migrated {
  const { corefile } = parseCorefile(text, { file, host, directives });
  const editor = new TextEditor(text, file);
  const notices: Notice[] = [];
  const drop = (directive: Directive, notice: Notice): void => {
    if (editor.has(directive)) editor.replace(directive, []);
    notices.push(
      editor.has(directive)
        ? notice
        : { ...notice, notes: [...notice.notes, "it is in an imported file, which is not changed"] },
    );
  };
  for (const option of corefile.globalOptions) {
    drop(option, {
      severity: "unsupported",
      plugin: option.name.text,
      version: to,
      notes: ["CoreDNS has no global options; plugins are a part of its program"],
      span: option.name.span,
    });
  }
  for (const { directives: all } of corefile.blocks) {
    for (const [index, directive] of all.entries()) {
      const plugin = directive.name.text;
      const { span } = directive.name;
      const since = pluginSince(plugin);
      if (since === undefined || !isUpTo(since, to)) {
        const notes = since === undefined ? ["only Portolan has it"] : [`it came with ${since}`];
        drop(directive, { severity: "unsupported", plugin, version: to, notes, span });
        continue;
      }
      const isRepeated = all.findIndex(({ name }) => name.text === plugin) < index;
      if (isRepeated && ONCE_IN_COREDNS.has(plugin)) {
        const notes = ["CoreDNS takes one of them in a server block"];
        drop(directive, { severity: "unsupported", plugin, version: to, notes, span });
        continue;
      }
      const newWord = wordSince(plugin, wordsOf(directive));
      if (newWord !== undefined && !isUpTo(newWord.version, to)) {
        const notes = [`'${newWord.word}' came with ${newWord.version}`];
        drop(directive, { severity: "unsupported", plugin, version: to, notes, span });
        continue;
      }
      for (const line of directive.block ?? []) {
        const option = line.name.text;
        const newDefault = NEW_DEFAULTS.find((each) => each.plugin === plugin && each.option === option);
        const isOwn = isOwnOption(plugin, option);
        const since = newDefault?.version ?? optionSince(plugin, option);
        if (!isOwn && (since === undefined || isUpTo(since, to))) continue;
        const notes = isOwn ? ["only Portolan has it"] : [`it came with ${since}`];
        drop(line, { severity: "unsupported", plugin, option, version: to, notes, span: line.name.span });
      }
    }
  }
  return { text: dropEmptyGlobalBlock(editor.finish()), notices };
}

/** The words after the name: of its own line, then those of its block. */
function wordsOf({ args, block = [] }: Directive): string[] {
  return [...args, ...block.flatMap((line) => [line.name, ...line.args])].map(({ text }) => text);
}

/** Braces without a key and without lines. */
function dropEmptyGlobalBlock(text: string): string {
  return text.replace(/^\s*\{\s*\n\s*\}\s*\n/, "");
}
