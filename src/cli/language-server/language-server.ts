/** `portolan language-server`: what editors ask about Corefiles, over standard input and output. */
import { nodeHost } from "../../corefile/node-host.ts";
import { exitCodesLine } from "../exit-codes.ts";
import { printFlagError } from "../flag-errors.ts";
import {
  FlagError,
  type FlagRow,
  flagLines,
  helpRow,
  parseFlags,
  parsePort,
  switchRow,
} from "../flag-table.ts";
import { defaultPluginFlags, PLUGIN_FLAGS, type PluginFlags, pluginRegistry } from "../plugin-list.ts";
import { fitted } from "../terminal.ts";
import { serveEditor } from "./session.ts";

interface LanguageServerFlags extends PluginFlags {
  port: number;
  files: boolean;
  help: boolean;
}

const EXIT = { DONE: 0, CANNOT: 2 } as const;

export const LANGUAGE_SERVER_FLAGS: readonly FlagRow<LanguageServerFlags>[] = [
  switchRow(["stdio"], "speak over standard input and output, as it does anyway", () => undefined),
  ...PLUGIN_FLAGS,
  {
    names: ["dns.port", "p"],
    value: "PORT",
    about: "port for server blocks without a port (default 53)",
    apply: (flags, value) => {
      flags.port = parsePort("dns.port", value);
    },
  },
  switchRow(["no-files"], "do not check the files that a Corefile names", (flags, on) => {
    flags.files = !on;
  }),
  helpRow(),
];

/** @returns the exit code, if the session does not begin; afterwards the editor ends the process */
export async function languageServer(argv: readonly string[]): Promise<number> {
  try {
    const flags: LanguageServerFlags = { ...defaultPluginFlags(), port: 53, files: true, help: false };
    const [word] = parseFlags(LANGUAGE_SERVER_FLAGS, flags, argv, true);
    if (flags.help) {
      process.stdout.write(usage());
      return EXIT.DONE;
    }
    if (word !== undefined)
      throw new FlagError(`language-server takes no words, found ${JSON.stringify(word)}`, EXIT.CANNOT, true);
    if (process.stdin.isTTY)
      throw new FlagError("language-server is started by an editor, not from a terminal", EXIT.CANNOT, true);
    return await serveEditor(process.stdin, process.stdout, {
      host: nodeHost,
      registryFor: (file) => pluginRegistry(flags, file),
      port: flags.port,
      files: flags.files,
    });
  } catch (error) {
    printFlagError(error, usage);
    return EXIT.CANNOT;
  }
}

function usage(): string {
  const text = [
    "portolan language-server answers editors about Corefiles: errors while typing, completion, help, formatting, and where a snippet or an import is.",
    "",
    "Usage: portolan language-server [FLAGS]",
    "",
    "An editor starts it and speaks the Language Server Protocol with it over standard input and output.",
    "",
    ...flagLines(LANGUAGE_SERVER_FLAGS),
    "",
    exitCodesLine("languageServer"),
    "",
  ];
  return fitted(text.join("\n"));
}
