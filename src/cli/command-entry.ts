/** Describes a command of the program. */
import type { FlagDescription } from "./flag-table.ts";

/**
 * Runs the command with the words after its name. Commands that describe all commands use the second parameter. @returns the exit
 * code
 */
export type Command = (argv: readonly string[], commands: readonly CommandEntry[]) => Promise<number>;

/** The kind of the words of a command that are not flags. */
export type WordKind = "files" | "none" | "plugin" | "question" | "action" | "shell";

export interface CommandEntry {
  readonly name: string;
  /** The words after the name in the usage line. */
  readonly words: string;
  readonly about: string;
  readonly wordKind: WordKind;
  /** The names of the actions, for a command that has them (`plugin new`). */
  readonly actions?: readonly string[];
  /** The command's page, below `docs/`. */
  readonly page?: string;
  readonly exitCodes: string;
  /** Loads the command when it is used, so that no command slows the start of another. */
  readonly load: () => Promise<Command>;
  readonly flags: () => Promise<readonly FlagDescription[]>;
}
