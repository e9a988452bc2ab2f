/** What a plugin throws when it is made or started, as a diagnostic with the place of the words that it is about. */

import { type Diagnostic, formatDiagnostic } from "../../corefile/diagnostic.ts";
import type { Token } from "../../corefile/tokens.ts";
import type { Directive } from "../../corefile/tree.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { SetupError } from "../../plugin/contract/define-plugin.ts";
import { type Configuration, ConfigurationError, type ConfiguredPlugin } from "./configuration.ts";

/**
 * @param index which instance of the plugin
 * @returns the same error where somebody has already said where it comes from
 */
export function setupFault(
  error: unknown,
  plugin: ConfiguredPlugin,
  index: number,
  textOf: Configuration["textOf"],
): ConfigurationError {
  if (error instanceof ConfigurationError) return error;
  const message = messageOf(error);
  const diagnostic = setupDiagnostic("error", message, plugin, index, notesOf(error, message));
  return new ConfigurationError(
    [diagnostic],
    formatDiagnostic(diagnostic, textOf(diagnostic.span.file)),
    error,
  );
}

/** What a plugin says about files that it needs, at the words that it is about. */
export function setupDiagnostic(
  severity: Diagnostic["severity"],
  message: string,
  plugin: ConfiguredPlugin,
  index: number,
  notes = notesOf(undefined, message),
): Diagnostic {
  const { directives } = plugin;
  // A plugin with one instance for all of its lines may mean any of them.
  const own = directives.length === plugin.configs.length ? directives.slice(index, index + 1) : directives;
  return {
    code: "PLUGIN_SETUP",
    severity,
    message: message.replaceAll(/\s*\n\s*/g, " "),
    span: (mentioned(own, message) ?? own[0]?.name ?? plugin.directive.name).span,
    notes,
  };
}

const MISSING_FILE = "create the file, or correct its path";
const MISSING_DIRECTORY = "create the directory, or correct its path";

function notesOf(error: unknown, message: string): readonly string[] {
  const own = error instanceof SetupError ? error.notes : [];
  if (own.length > 0 || !/\bENOENT\b|no such file|does not exist:/.test(message)) return own;
  return [/directory does not|path does not/i.test(message) ? MISSING_DIRECTORY : MISSING_FILE];
}

/** The longest argument that the message names, behind the directive or one of its options. */
function mentioned(directives: readonly Directive[], message: string): Token | undefined {
  return directives
    .flatMap(wordsOf)
    .filter(({ text }) => spellings(text).some((spelling) => names(message, spelling)))
    .sort((one, other) => other.text.length - one.text.length)[0];
}

function wordsOf({ args, block = [] }: Directive): Token[] {
  return [...args, ...block.flatMap(wordsOf)];
}

/** Messages about `tls://dns.example` speak of `dns.example`, and those about a pair of keys of one of its files. */
function spellings(word: string): string[] {
  return [word, word.replace(/^\w+:\/\//, ""), `${word}.key`, `${word}.private`];
}

function names(message: string, word: string): boolean {
  const isPart = (character: string | undefined): boolean =>
    character !== undefined && /[\p{L}\p{N}_.-]/u.test(character);
  for (let at = message.indexOf(word); at >= 0 && word !== ""; at = message.indexOf(word, at + 1)) {
    const behind = message.slice(at + word.length);
    if (!isPart(message[at - 1]) && !isPart(behind[0] === "." ? behind[1] : behind[0])) return true;
  }
  return false;
}
