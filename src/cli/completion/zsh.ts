import type { FlagDescription } from "../flag-table.ts";
import { type CompletedCommand, type CompletionModel, valueKind } from "./model.ts";

/** A script that can be sourced, or installed as `_portolan` in a folder of `fpath`. */
export function zshCompletion(model: CompletionModel): string {
  const { commands } = model;
  const named = commands.filter(({ name }) => name !== "");
  const [server] = commands;
  return `#compdef portolan
# Completion of portolan for zsh. In ~/.zshrc, behind compinit: source <(portolan completion zsh)
_portolan() {
  local -a commands
  commands=(
${named.map(({ name, about }) => `    ${quoted(`${name}:${about}`)}`).join("\n")}
  )
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    _describe -t commands command commands
    return
  fi
  case $words[2] in
${named.map((command) => commandCase(command, model)).join("\n")}
    *) _arguments ${specifications(server?.flags ?? []).join(" ")} ;;
  esac
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _portolan "$@"
else
  compdef _portolan portolan
fi
`;
}

function commandCase({ name, flags, wordKind, actions }: CompletedCommand, model: CompletionModel): string {
  const list = (what: string, words: readonly string[]): string => quoted(`${what}:(${words.join(" ")})`);
  const words = {
    none: [],
    files: [quoted("*:file:_files")],
    plugin: [list("1:plugin", model.plugins)],
    question: [quoted("1:name:"), list("2:type", model.types)],
    action: [list("1:action", actions), quoted("*:file:_files")],
    shell: [list("1:shell", actions)],
  };
  const all = [...specifications(flags), ...words[wordKind]].join(" ");
  return `    ${name}) shift words; (( CURRENT-- )); _arguments ${all} ;;`;
}

function specifications(flags: readonly FlagDescription[]): string[] {
  return flags.flatMap((flag) => {
    const value = flag.value ?? "";
    const message = value.replaceAll(":", " ");
    const actions = {
      none: "",
      choices: `:${message}:(${flag.choices?.join(" ")})`,
      files: `:${message}:_files`,
      other: `:${message}:`,
    };
    const about = flag.about.replaceAll(/[[\]:\\]/g, "\\$&");
    return flag.names.map((name) => quoted(`-${name}[${about}]${actions[valueKind(flag)]}`));
  });
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
