/** Turns a Corefile of an older CoreDNS into one of a newer version, and keeps comments and layout. */
import { TextEditor } from "../../corefile/history/edit-text.ts";
import { textOf } from "../../corefile/history/line.ts";
import { oldLog } from "../../corefile/history/old-log.ts";
import { findOldWords, OLD_DIRECTIVES, type OldWord, spanOf } from "../../corefile/history/old-words.ts";
import type { CorefileHost } from "../../corefile/host.ts";
import { parseCorefile } from "../../corefile/parser.ts";
import type { Corefile } from "../../corefile/tree.ts";
import { directivesWithout, NEW_DEFAULTS, type NewDefault } from "./new-defaults.ts";
import type { Migrated, Notice } from "./notice.ts";
import { isBetween, isUpTo } from "./versions.ts";

export interface UpgradeOptions {
  /** Name of the text, for messages; its folder is the base of imports. */
  readonly file: string;
  readonly host: CorefileHost;
  /** Without it, only removed words are replaced, and nothing is added. */
  readonly from: string | undefined;
  readonly to: string;
  /** Also rewrites deprecated words. */
  readonly deprecations: boolean;
  /** Known directives; a Corefile may have others. */
  readonly directives: Iterable<string>;
}

export function upgrade(text: string, options: UpgradeOptions): Migrated {
  const { file, host, from } = options;
  const first = readText(text, options);
  const words = findOldWords(first, reader(host));
  const editor = new TextEditor(text, file);
  const notices = [
    ...words.flatMap((word) => noticesOf(word, editor.has(word.old), options)),
    ...unknownPlugins(first, options),
    ...federations(first, options),
  ];
  for (const word of words) if (isDue(word, options) && editor.has(word.old)) rewrite(word, editor);
  notices.push(...renewLogs(first, editor, options));
  const rewritten = editor.finish();
  const once = withoutRepetitions(notices);
  if (from === undefined) return { text: rewritten, notices: once };
  return addDefaults(rewritten, from, options, once);
}

/** Text that is imported several times is reported once. */
function withoutRepetitions(notices: readonly Notice[]): Notice[] {
  const byPlace = new Map<string, Notice>();
  for (const notice of notices) {
    const { severity, version, span } = notice;
    const place = [severity, version, span?.file, span?.line, span?.column, ...notice.notes].join(" ");
    if (!byPlace.has(place)) byPlace.set(place, notice);
  }
  return [...byPlace.values()];
}

/** Unknown plugins are copied unchanged. */
function unknownPlugins({ blocks }: Corefile, { directives, to: version }: UpgradeOptions): Notice[] {
  const known = new Set([...directives, ...OLD_DIRECTIVES]);
  return blocks.flatMap((block) =>
    block.directives.flatMap(({ name: { text: plugin, span } }): Notice[] =>
      known.has(plugin) ? [] : [{ severity: "unsupported", plugin, version, notes: [], span }],
    ),
  );
}

/** Reports a word once, with the last change on the way: earlier changes ask for the same. */
function noticesOf(word: OldWord, isInText: boolean, options: UpgradeOptions): Notice[] {
  const { from = "0.0.0", to } = options;
  const steps: readonly { readonly severity: Notice["severity"]; readonly version: string | undefined }[] = [
    { severity: "deprecated", version: word.deprecated },
    { severity: "ignored", version: word.ignored },
    { severity: "removed", version: word.removed },
  ];
  // A word that was already removed in the old version is still rewritten.
  const last =
    steps.findLast(({ version }) => version !== undefined && isBetween(version, from, to)) ??
    (isDue(word, options)
      ? steps.findLast(({ version }) => version !== undefined && isUpTo(version, to))
      : undefined);
  if (last?.version === undefined) return [];
  const notice = noticeOf(word, last.severity, last.version);
  const isKept = !isInText && isDue(word, options);
  return [isKept ? { ...notice, notes: [...notice.notes, IN_IMPORTED_FILE] } : notice];
}

const IN_IMPORTED_FILE = "it is in an imported file, which is not changed";

/** This server still has the directive, so it is not an unknown plugin; CoreDNS refuses the Corefile. */
function federations({ blocks }: Corefile, { from = "0.0.0", to }: UpgradeOptions): Notice[] {
  const version = "1.7.0";
  if (!isUpTo(version, to) || isUpTo(to, from)) return [];
  return blocks.flatMap(({ directives }) =>
    directives.flatMap(({ name: { text: plugin, span } }): Notice[] =>
      plugin === "federation"
        ? [{ severity: "removed", plugin, version, notes: [FEDERATION_STAYS], span }]
        : [],
    ),
  );
}

const FEDERATION_STAYS =
  "it stays in the Corefile: Portolan still serves it, but CoreDNS does not start with it; delete it unless clients query names of federations";

/** For years, `log stdout` was read as a name, and no version warned about it. */
function renewLogs({ blocks }: Corefile, editor: TextEditor, { to: version }: UpgradeOptions): Notice[] {
  return blocks.flatMap(({ directives }) =>
    directives.flatMap((directive): Notice[] => {
      const found = oldLog(directive);
      if (found === undefined) return [];
      const { name, args } = directive;
      const isInText = editor.has(directive);
      if (isInText) editor.replace(directive, [found.today]);
      const old = textOf({ words: [name, ...args] });
      const note = `'${old}' ${isInText ? "becomes" : "should be"} '${textOf({ words: found.today.words })}': CoreDNS reads ${found.words.map(({ text }) => `'${text}'`).join(" and ")} as a zone, so it logged no query`;
      return [
        {
          severity: "changed",
          plugin: "log",
          version,
          notes: isInText ? [note] : [note, IN_IMPORTED_FILE],
          span: name.span,
        },
      ];
    }),
  );
}

function noticeOf(word: OldWord, severity: Notice["severity"], version: string): Notice {
  const { plugin, option, replacedBy, losses } = word;
  return {
    severity,
    plugin,
    ...(option !== undefined && { option }),
    version,
    ...(replacedBy !== undefined && { replacedBy }),
    notes: losses,
    span: spanOf(word),
  };
}

/** Removed words are always due. Words with a mere warning are due on request. */
function isDue({ deprecated, ignored, removed }: OldWord, { to, deprecations }: UpgradeOptions): boolean {
  if ([ignored, removed].some((version) => version !== undefined && isUpTo(version, to))) return true;
  return deprecations && deprecated !== undefined && isUpTo(deprecated, to);
}

function rewrite({ old, lines, beside, directive }: OldWord, editor: TextEditor): void {
  editor.replace(old, lines);
  if (beside.length > 0) editor.insertBehind(directive, beside);
}

/** One after the other, since each must see what the previous one added. */
function addDefaults(text: string, from: string, options: UpgradeOptions, notices: Notice[]): Migrated {
  let current = text;
  for (const added of NEW_DEFAULTS) {
    if (isBetween(added.version, from, options.to)) current = addDefault(current, added, options, notices);
  }
  return { text: current, notices };
}

function addDefault(
  text: string,
  { version, plugin, option, line, wants }: NewDefault,
  options: UpgradeOptions,
  notices: Notice[],
): string {
  const editor = new TextEditor(text, options.file);
  const done = new Set<string>();
  for (const block of readText(text, options).blocks) {
    if (option === undefined) {
      if (!wants(block)) continue;
      editor.append(block, [line]);
      notices.push({ severity: "newdefault", plugin, version, notes: [] });
      continue;
    }
    for (const directive of directivesWithout(block, plugin, option)) {
      const { line: row, column } = directive.name.span;
      const place = `${row}:${column}`;
      if (!editor.has(directive) || done.has(place)) continue;
      done.add(place);
      editor.addOption(directive, line);
      notices.push({ severity: "newdefault", plugin, option, version, notes: [] });
    }
  }
  return editor.finish();
}

function readText(text: string, { file, host, directives }: UpgradeOptions): Corefile {
  return parseCorefile(text, { file, host, directives: [...directives, ...OLD_DIRECTIVES] }).corefile;
}

function reader(host: CorefileHost): (path: string) => string | undefined {
  return (path) => {
    const content = host.readFile(path);
    return content.kind === "text" ? content.text : undefined;
  };
}
