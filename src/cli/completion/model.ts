/** The words to complete, as data. Each shell's script is made from it. */
import { RecordType } from "../../dns/type-names.ts";
import { builtInPlugins } from "../../server/configuration/plugin-registry.ts";
import type { CommandEntry, WordKind } from "../command-entry.ts";
import type { FlagDescription } from "../flag-table.ts";
import { SERVER_FLAGS } from "../flags.ts";

export interface CompletionModel {
  /** The command without a name is the server. */
  readonly commands: readonly CompletedCommand[];
  readonly plugins: readonly string[];
  /** Record types. */
  readonly types: readonly string[];
}

export interface CompletedCommand {
  readonly name: string;
  readonly about: string;
  readonly flags: readonly FlagDescription[];
  readonly wordKind: WordKind | "none";
  readonly actions: readonly string[];
}

export async function completionModel(all: readonly CommandEntry[]): Promise<CompletionModel> {
  const commands = await Promise.all(
    all.map(async ({ name, about, wordKind, actions = [], flags }) => ({
      name,
      about,
      wordKind,
      actions,
      flags: await flags(),
    })),
  );
  const server: CompletedCommand = {
    name: "",
    about: "serves DNS",
    wordKind: "none",
    actions: [],
    flags: SERVER_FLAGS,
  };
  const plugins = await builtInPlugins();
  return {
    commands: [server, ...commands],
    plugins: plugins.map(({ name }) => name).sort(),
    types: Object.keys(RecordType),
  };
}

/** The kind of value that a flag takes. */
export function valueKind({ value, choices }: FlagDescription): "none" | "choices" | "files" | "other" {
  if (value === undefined) return "none";
  if (choices !== undefined) return "choices";
  return /^(FILE|PATH|FOLDER)/.test(value) ? "files" : "other";
}
