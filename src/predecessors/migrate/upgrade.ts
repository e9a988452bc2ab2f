/** A Corefile of an older CoreDNS as one of a newer version, comments and layout kept. */
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
  /** Name of the text, for messages, and its folder for imports. */
  readonly file: string;
  readonly host: CorefileHost;
  /** Without it only what is gone is replaced, and nothing is added. */
  readonly from: string | undefined;
  readonly to: string;
  /** Rewrites what is only deprecated as well. */
  readonly deprecations: boolean;
  /** Directives that exist; a Corefile may have more than those. */
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

/** What is imported several times is said once. */
function withoutRepetitions(notices: readonly Notice[]): Notice[] {
  const byPlace = new Map<string, Notice>();
  for (const notice of notices) {
    const { severity, version, span } = notice;
    const place = [severity, version, span?.file, span?.line, span?.column, ...notice.notes].join(" ");
    if (!byPlace.has(place)) byPlace.set(place, notice);
  }
  return [...byPlace.values()];
}

/** What nobody here knows is copied as it is. */
function unknownPlugins({ blocks }: Corefile, { directives, to: version }: UpgradeOptions): Notice[] {
  const known = new Set([...directives, ...OLD_DIRECTIVES]);
  return blocks.flatMap((block) =>
    block.directives.flatMap(({ name: { text: plugin, span } }): Notice[] =>
      known.has(plugin) ? [] : [{ severity: "unsupported", plugin, version, notes: [], span }],
    ),
  );
}

/** What became of a word: the last of the changes on the way alone, as the ones before it ask for the same. */
function noticesOf(word: OldWord, isInText: boolean, options: UpgradeOptions): Notice[] {
  const { from = "0.0.0", to } = options;
  const steps: readonly { readonly severity: Notice["severity"]; readonly version: string | undefined }[] = [
    { severity: "deprecated", version: word.deprecated },
    { severity: "ignored", version: word.ignored },
    { severity: "removed", version: word.removed },
  ];
  // A word that was already gone in the old version is rewritten all the same.
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

/** This server still knows the directive, so it is no unknown plugin; CoreDNS refuses the Corefile. */
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
  "it stays in the Corefile: Portolan still serves it, CoreDNS does not start with it; delete it unless clients ask for names of federations";

/** `log stdout` was read as a name for years, which no version warned of. */
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

/** What the new version refuses goes in any case; what it only warns of, where that is asked for. */
function isDue({ deprecated, ignored, removed }: OldWord, { to, deprecations }: UpgradeOptions): boolean {
  if ([ignored, removed].some((version) => version !== undefined && isUpTo(version, to))) return true;
  return deprecations && deprecated !== undefined && isUpTo(deprecated, to);
}

function rewrite({ old, lines, beside, directive }: OldWord, editor: TextEditor): void {
  editor.replace(old, lines);
  if (beside.length > 0) editor.insertBehind(directive, beside);
}

/** One after the other, as each has to see what the one before it added. */
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
