// Makes the manual pages, out of the READMEs, docs/ and the tables of flags: into the folder that is named, or into man/, and then
// package.json lists them, because npm links no page that is not in its list.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { CommandEntry } from "../src/cli/command-entry.ts";
import { COMMANDS } from "../src/cli/commands.ts";
import type { FlagDescription } from "../src/cli/flag-table.ts";
import { SERVER_FLAGS } from "../src/cli/flags.ts";
import { version } from "../src/lib/text/version.ts";
import { builtInPlugins } from "../src/server/configuration/plugin-registry.ts";
import { type ManPage, manPage, splitPage } from "./lib/man-page.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [, , folder = join(root, "man")] = process.argv;
// Reproducible builds say what time it is.
const epoch = process.env.SOURCE_DATE_EPOCH;
const date = (epoch === undefined ? new Date() : new Date(Number(epoch) * 1000)).toISOString().slice(0, 10);

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
write(await programPage());
for (const command of COMMANDS)
  if (command.page !== undefined) write(await commandPage(command, command.page));
write(corefilePage());
for (const { name } of await builtInPlugins()) write(pluginPage(name));
if (process.argv[2] === undefined) listInPackage();

function listInPackage(): void {
  const file = join(root, "package.json");
  const manifest: object = JSON.parse(readFileSync(file, "utf8"));
  const man = readdirSync(folder)
    .sort()
    .map((page) => `man/${page}`);
  writeFileSync(file, `${JSON.stringify({ ...manifest, man }, undefined, 2)}\n`);
}

function write(page: Pick<ManPage, "name" | "section" | "summary" | "body">): void {
  const text = manPage({ ...page, version, date });
  writeFileSync(join(folder, `${page.name}.${page.section}`), text);
}

async function programPage() {
  const commands = COMMANDS.map(
    ({ name, words, about }) => `| \`portolan ${name} ${words.replaceAll("|", "\\|")}\` | ${about} |`,
  );
  const body = `## Synopsis

\`\`\`
portolan [-conf COREFILE] [-dns.port PORT] [-quiet]
portolan COMMAND [WORDS...]
\`\`\`

## Description

Runs a DNS server with a Corefile, and with the flags, signals and exit codes of CoreDNS. Without \`-conf\`, it uses the \`Corefile\` in the
working directory, or the built-in one. Flags have one or two dashes: \`-flag value\` or \`-flag=value\`.

## Options

${flagTable(SERVER_FLAGS)}

## Commands

| command | |
|---|---|
${commands.join("\n")}

## Signals

| signal | |
|---|---|
| SIGUSR1 | reloads the Corefile; a faulty one changes nothing |
| SIGTERM, SIGINT | stop after queries in progress are answered; a second SIGINT does not wait |
| SIGQUIT | stops immediately |

## Environment

| variable | |
|---|---|
| \`NO_COLOR\` | disables colors |
| \`PORTOLAN_UDP=dgram\` | receives UDP datagrams one by one, without batches |

## Exit status

0 after a signal, or if a command found no problem; 1 if the server cannot start; 2 for an invalid command line.

## See also

${COMMANDS.flatMap(({ name, page }) => (page === undefined ? [] : [`\`portolan-${name}\`(1)`])).join(", ")}, \`Corefile\`(5), and \`portolan-\`*plugin*(7) for each plugin
`;
  return { name: "portolan", section: 1, summary: "the DNS server of a Kubernetes cluster", body } as const;
}

async function commandPage(command: CommandEntry, page: string) {
  const { name } = command;
  const { summary, rest } = splitPage(readFileSync(join(root, "docs", page), "utf8"));
  const synopsis = /```txt\n(portolan [\s\S]*?)```\n/.exec(rest);
  const isOfCommand = synopsis?.[1]?.startsWith(`portolan ${name}`) === true;
  const behind = isOfCommand ? rest.replace(synopsis[0], "") : rest;
  const shown = isOfCommand ? synopsis[1] : `portolan ${name} ${command.words}\n`;
  const body = `## Synopsis

\`\`\`
${shown}\`\`\`

## Options

${flagTable(await command.flags())}

## Description

${behind}

## Exit status

${command.exitCodes.replaceAll(/, (?=\d )/g, "; ")}.

## See also

\`portolan\`(1), \`Corefile\`(5)
`;
  return { name: `portolan-${name}`, section: 1, summary: lowerFirst(summary), body } as const;
}

function corefilePage() {
  const { summary, rest } = splitPage(readFileSync(join(root, "docs", "corefile.md"), "utf8"));
  const body = `## Description\n\n${rest}\n\n## See also\n\n\`portolan\`(1), \`portolan-check\`(1)\n`;
  return { name: "Corefile", section: 5, summary: lowerFirst(summary), body } as const;
}

function pluginPage(name: string) {
  const { summary, rest } = splitPage(readFileSync(join(root, "src", "plugins", name, "README.md"), "utf8"));
  const body = `${rest}\n\n## See also\n\n\`portolan\`(1), \`Corefile\`(5)\n`;
  return { name: `portolan-${name}`, section: 7, summary: lowerFirst(summary), body } as const;
}

function flagTable(flags: readonly FlagDescription[]): string {
  const rows = flags.map(({ names, value, about }) => {
    const spelled = names.map((name) => `\`-${name}\``).join(", ");
    return `| ${spelled}${value === undefined ? "" : ` **${value}**`} | ${about} |`.replaceAll(
      /(?<=\w)\|(?=\w)/g,
      "\\|",
    );
  });
  return ["| flag | |", "|---|---|", ...rows].join("\n");
}

function lowerFirst(text: string): string {
  const words = text.replaceAll("`", "");
  return /^[A-Z][a-z]/.test(words) ? words.charAt(0).toLowerCase() + words.slice(1) : words;
}
