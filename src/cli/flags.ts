/** Command line of the server (docs/spec/coredns-behaviour.md#command-line). */
import type { CommandEntry } from "./command-entry.ts";
import {
  FlagError,
  type FlagRow,
  flagLines,
  type LogFlags,
  logFormatRow,
  parseFlags,
  parsePort,
  switchRow,
} from "./flag-table.ts";
import { defaultPluginFlags, PLUGIN_FLAGS, type PluginFlags } from "./plugin-list.ts";
import { fitted } from "./terminal.ts";

export interface ServerFlags extends PluginFlags, LogFlags {
  conf: string;
  port: number;
  pidfile: string;
  listPlugins: boolean;
  version: boolean;
  quiet: boolean;
  help: boolean;
}

export const SERVER_FLAGS: readonly FlagRow<ServerFlags>[] = [
  {
    names: ["conf"],
    value: "FILE",
    about: 'Corefile to run; "stdin" reads it from standard input (default: ./Corefile, else a built-in one)',
    apply: (flags, value) => {
      flags.conf = value;
    },
  },
  {
    names: ["dns.port", "p"],
    value: "PORT",
    about: "port for server blocks without a port (default 53)",
    apply: (flags, value) => {
      flags.port = parsePort("dns.port", value);
    },
  },
  {
    names: ["pidfile"],
    value: "FILE",
    about: "write the process id to FILE after a successful start",
    apply: (flags, value) => {
      flags.pidfile = value;
    },
  },
  logFormatRow(),
  ...PLUGIN_FLAGS,
  switchRow(["plugins"], "list the plugins in chain order with their origin, and exit", (flags, on) => {
    flags.listPlugins = on;
  }),
  switchRow(["version"], "show the version and exit", (flags, on) => {
    flags.version = on;
  }),
  switchRow(["quiet"], "do not print zones and version at startup", (flags, on) => {
    flags.quiet = on;
  }),
  switchRow(["help", "h"], "show this help", (flags, on) => {
    flags.help = on;
  }),
];

/** @throws FlagError */
export function parseServerFlags(argv: readonly string[]): ServerFlags {
  const flags: ServerFlags = {
    ...defaultPluginFlags(),
    conf: "",
    port: 53,
    pidfile: "",
    logFormat: "text",
    listPlugins: false,
    version: false,
    quiet: false,
    help: false,
  };
  const words = parseFlags(SERVER_FLAGS, flags, argv, false);
  if (words.length > 0) throw new FlagError(`extra command line arguments: [${words.join(" ")}]`, 1, false);
  return flags;
}

export function usage(program: string, commands: readonly CommandEntry[]): string {
  const text = [
    `${program} is a DNS server. It runs CoreDNS Corefiles.`,
    "",
    `Usage: ${program} [-conf COREFILE] [-dns.port PORT] [-quiet]`,
    `       ${program} COMMAND [WORDS...]`,
    "",
    ...commands.map(({ name, about }) => `  ${name.padEnd(14)} ${about}`),
    "",
    ...flagLines(SERVER_FLAGS),
    "",
    "Signals: SIGUSR1 reloads the Corefile, SIGTERM and SIGINT stop gracefully.",
    "",
  ];
  return fitted(text.join("\n"));
}
