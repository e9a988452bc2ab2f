/** What a command of the program is. */
import type { FlagDescription } from "./flag-table.ts";

/** Runs with the words behind its name; what speaks of all commands takes them, too. @returns the exit code */
export type Command = (argv: readonly string[], commands: readonly CommandEntry[]) => Promise<number>;

/** What the words of a command are that are no flags. */
export type WordKind = "files" | "none" | "plugin" | "question" | "action" | "shell";

export interface CommandEntry {
  readonly name: string;
  /** Behind the name, in the usage. */
  readonly words: string;
  readonly about: string;
  readonly wordKind: WordKind;
  /** Where it has actions (`plugin new`): their names. */
  readonly actions?: readonly string[];
  /** Its page, below `docs/`. */
  readonly page?: string;
  readonly exitCodes: string;
  /** Loaded when asked for: none of them shall make the others slower to start. */
  readonly load: () => Promise<Command>;
  readonly flags: () => Promise<readonly FlagDescription[]>;
}
