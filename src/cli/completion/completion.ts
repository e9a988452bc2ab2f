/** `portolan completion`: scripts that complete commands, flags, plugins and files in a shell. */
import type { CommandEntry } from "../command-entry.ts";
import { exitCodesLine } from "../exit-codes.ts";
import { fitted } from "../terminal.ts";
import { bashCompletion } from "./bash.ts";
import { fishCompletion } from "./fish.ts";
import { type CompletionModel, completionModel } from "./model.ts";
import { zshCompletion } from "./zsh.ts";

const SHELLS: ReadonlyMap<string, (model: CompletionModel) => string> = new Map([
  ["bash", bashCompletion],
  ["zsh", zshCompletion],
  ["fish", fishCompletion],
]);

const USAGE = `Usage: portolan completion bash|zsh|fish   prints a script for the shell

  bash  in ~/.bashrc:                  source <(portolan completion bash)
  zsh   in ~/.zshrc, behind compinit:  source <(portolan completion zsh)
  fish  once:                          portolan completion fish > ~/.config/fish/completions/portolan.fish

${exitCodesLine("completion")}
`;

/** @returns the exit code: 0, or 2 for an unknown shell */
export async function completion(argv: readonly string[], all: readonly CommandEntry[]): Promise<number> {
  const [shell = "", ...others] = argv;
  if (/^--?h(elp)?$/.test(shell)) {
    process.stdout.write(fitted(USAGE));
    return 0;
  }
  const script = SHELLS.get(shell);
  if (script === undefined || others.length > 0) {
    process.stderr.write(fitted(USAGE));
    return 2;
  }
  process.stdout.write(script(await completionModel(all)));
  return 0;
}
