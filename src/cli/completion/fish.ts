import { type CompletedCommand, type CompletionModel, valueKind } from "./model.ts";

export function fishCompletion(model: CompletionModel): string {
  const named = model.commands.filter(({ name }) => name !== "");
  const names = named.map(({ name }) => name).join(" ");
  return `# Completion of portolan for fish: portolan completion fish > ~/.config/fish/completions/portolan.fish
complete -c portolan -f
${named.map(({ name, about }) => `complete -c portolan -n __fish_use_subcommand -a ${name} -d ${quoted(about)}`).join("\n")}
${model.commands.flatMap((command) => lines(command, names, model)).join("\n")}
`;
}

function lines(command: CompletedCommand, names: string, model: CompletionModel): string[] {
  const { name, flags, wordKind, actions } = command;
  const condition =
    name === "" ? `not __fish_seen_subcommand_from ${names}` : `__fish_seen_subcommand_from ${name}`;
  const line = (rest: string): string => `complete -c portolan -n ${quoted(condition)} ${rest}`;
  const words = {
    none: [],
    files: [line("-F")],
    plugin: [line(`-a ${quoted(model.plugins.join(" "))}`)],
    question: [line(`-a ${quoted(model.types.join(" "))}`)],
    action: [line(`-a ${quoted(actions.join(" "))}`), line("-F")],
    shell: [line(`-a ${quoted(actions.join(" "))}`)],
  };
  return [
    ...flags.flatMap((flag) => {
      const value = {
        none: "",
        choices: ` -x -a ${quoted((flag.choices ?? []).join(" "))}`,
        files: " -r -F",
        other: " -x",
      }[valueKind(flag)];
      return flag.names.map((each) => line(`-o ${each} -d ${quoted(flag.about)}${value}`));
    }),
    ...words[wordKind],
  ];
}

function quoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, "\\$&")}'`;
}
