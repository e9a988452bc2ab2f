/**
 * `log [NAME] FILE [FORMAT]`, as in the first versions of CoreDNS. Since then the words are read as names, and `log` matches no
 * query. The server keeps that behaviour, so that a new version does not suddenly log every query; `check` and `migrate` recognize
 * the intent.
 */
import type { Token } from "../tokens.ts";
import type { Directive } from "../tree.ts";
import { type CorefileLine, line, type Word } from "./line.ts";

export interface OldLog {
  /** The words that are not names: files, and `/` for all names. */
  readonly words: readonly Token[];
  readonly today: CorefileLine;
}

/** @returns `undefined` for a directive other than a `log` that names a file */
export function oldLog(directive: Directive): OldLog | undefined {
  const words = oldWordsOf(directive);
  return words.length === 0 ? undefined : { words, today: todaysLog(directive, words) };
}

function oldWordsOf({ name, args }: Directive): Token[] {
  if (name.text !== "log") return [];
  return args.filter((word) => !isFormat(word) && isFile(word.text));
}

/** A name may contain a slash, as in 0/25.2.0.192.in-addr.arpa, but not at its start. */
function isFile(text: string): boolean {
  return ["stdout", "stderr", "syslog"].includes(text) || text.startsWith("/");
}

function isFormat({ text }: Token): boolean {
  return text.includes("{");
}

function todaysLog({ name, args, block }: Directive, old: readonly Token[]): CorefileLine {
  const kept = args.filter((word) => !old.includes(word));
  const names: readonly Word[] = kept.filter((word) => !isFormat(word));
  const formats: readonly Word[] = kept.filter(isFormat);
  // A format needs a name before it.
  const scopes = names.length === 0 && formats.length > 0 ? ["."] : names;
  return line([name, ...scopes, ...formats], block?.map(lineOf));
}

function lineOf({ name, args, block }: Directive): CorefileLine {
  return line([name, ...args], block?.map(lineOf));
}
