import type { FlagDescription } from "../flag-table.ts";
import { type CompletedCommand, type CompletionModel, valueKind } from "./model.ts";

/** A script for bash 3.2 and newer. It needs no other package. */
export function bashCompletion({ commands, plugins, types }: CompletionModel): string {
  const names = commands.map(({ name }) => name).filter((name) => name !== "");
  return `# Completion of portolan for bash. In ~/.bashrc: source <(portolan completion bash)
_portolan_words() {
  local IFS=$' \\t\\n'
  COMPREPLY=($(compgen -W "$1" -- "$2"))
}

_portolan_files() {
  local IFS=$'\\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$1"))
}

_portolan() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} command= flags= words=
  # The equals sign of -flag=value is a word of its own.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=\${COMP_WORDS[COMP_CWORD - 2]}
  fi
  if ((COMP_CWORD > 1)); then
    case \${COMP_WORDS[1]} in
      ${names.join(" | ")}) command=\${COMP_WORDS[1]} ;;
    esac
  fi
  case $command:\${previous/#--/-} in
${commands.flatMap(valueCases).join("\n")}
  esac
  case $command in
${commands.map(flagCase).join("\n")}
  esac
  if [[ $current == --* ]]; then
    flags=" $flags"
    _portolan_words "\${flags// -/ --}" "$current"
  elif [[ $current == -* ]]; then
    _portolan_words "$flags" "$current"
  else
    case $command in
${commands.map((command) => wordCase(command, names, plugins, types)).join("\n")}
    esac
  fi
}

complete -F _portolan portolan
`;
}

function valueCases({ name, flags }: CompletedCommand): string[] {
  return flags.flatMap((flag) => {
    const kind = valueKind(flag);
    if (kind === "none") return [];
    const patterns = flag.names.map((each) => `${name}:-${each}`).join(" | ");
    const actions = {
      choices: `_portolan_words "${flag.choices?.join(" ")}" "$current"; return`,
      files: '_portolan_files "$current"; return',
      other: "return",
    };
    return `    ${patterns}) ${actions[kind]} ;;`;
  });
}

function flagCase({ name, flags }: CompletedCommand): string {
  return `    ${name === "" ? "''" : name}) flags='${flagWords(flags)}' ;;`;
}

function flagWords(flags: readonly FlagDescription[]): string {
  return flags.flatMap(({ names }) => names.map((name) => `-${name}`)).join(" ");
}

function wordCase(
  { name, wordKind, actions }: CompletedCommand,
  names: readonly string[],
  plugins: readonly string[],
  types: readonly string[],
): string {
  const words = (list: readonly string[]): string => `_portolan_words '${list.join(" ")}' "$current"`;
  const completed = {
    none: `((COMP_CWORD == 1)) && ${words(names)}`,
    files: '_portolan_files "$current"',
    plugin: words(plugins),
    question: `((COMP_CWORD > 2)) && ${words(types)}`,
    action: `if ((COMP_CWORD == 2)); then ${words(actions)}; else _portolan_files "$current"; fi`,
    shell: `((COMP_CWORD == 2)) && ${words(actions)}`,
  };
  return `      ${name === "" ? "''" : name}) ${completed[wordKind]} ;;`;
}
