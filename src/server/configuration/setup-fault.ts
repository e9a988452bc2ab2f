/** Turns the error of a plugin's `create` or `start` into a diagnostic with the place of the words that caused it. */

import { type Diagnostic, formatDiagnostic } from "../../corefile/diagnostic.ts";
import type { Token } from "../../corefile/tokens.ts";
import type { Directive } from "../../corefile/tree.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { SetupError } from "../../plugin/contract/define-plugin.ts";
import { type Configuration, ConfigurationError, type ConfiguredPlugin } from "./configuration.ts";

/**
 * @param index the index of the plugin's instance
 * @returns the same error if it already has a place
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

/** Turns a plugin's message about its files into a diagnostic at the words that name them. */
export function setupDiagnostic(
  severity: Diagnostic["severity"],
  message: string,
  plugin: ConfiguredPlugin,
  index: number,
  notes = notesOf(undefined, message),
): Diagnostic {
  const { directives } = plugin;
  // The single instance of a plugin with several lines may mean any of them.
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

/** The longest argument of the directive or its options that occurs in the message. */
function mentioned(directives: readonly Directive[], message: string): Token | undefined {
  return directives
    .flatMap(wordsOf)
    .filter(({ text }) => spellings(text).some((spelling) => names(message, spelling)))
    .sort((one, other) => other.text.length - one.text.length)[0];
}

function wordsOf({ args, block = [] }: Directive): Token[] {
  return [...args, ...block.flatMap(wordsOf)];
}

/** Messages about `tls://dns.example` name `dns.example`, and those about a key pair name one of its files. */
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
