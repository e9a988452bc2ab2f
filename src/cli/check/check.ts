/** `portolan check`: finds all errors in Corefiles without running them. */
import { existsSync } from "node:fs";
import type { Diagnostic } from "../../corefile/diagnostic.ts";
import { HelmValuesError } from "../../predecessors/migrate/from-helm-values.ts";
import { PluginListError } from "../../server/configuration/plugin-registry.ts";
import { UnreadableCorefile } from "../corefile-source.ts";
import { exitCodesLine } from "../exit-codes.ts";
import { FlagError, type FlagRow, flagLines, parseFlags, parsePort, switchRow } from "../flag-table.ts";
import { defaultPluginFlags, PLUGIN_FLAGS, type PluginFlags, pluginRegistry } from "../plugin-list.ts";
import { fitted, wantsColour } from "../terminal.ts";
import { checkFiles } from "./check-files.ts";
import type { CheckedFile } from "./checked-file.ts";
import { type CheckFormat, FORMATS } from "./formats.ts";
import { hasNameOfCorefile, readGivenFiles } from "./given-files.ts";

interface CheckFlags extends PluginFlags {
  /** The server's flag `-conf`, here repeatable. */
  conf: string[];
  format: () => Promise<CheckFormat>;
  strict: boolean;
  port: number;
  files: boolean;
  help: boolean;
}

const EXIT = { CLEAN: 0, FAULTY: 1, CANNOT: 2 } as const;

export const CHECK_FLAGS: readonly FlagRow<CheckFlags>[] = [
  {
    names: ["conf"],
    value: "FILE",
    about: 'Corefile to check, as for the server; "stdin" reads it from standard input; can be repeated',
    apply: (flags, value) => {
      if (value !== "") flags.conf.push(value);
    },
  },
  {
    names: ["format"],
    value: "FORMAT",
    about: "human, json, sarif or github (default human)",
    choices: [...FORMATS.keys()],
    apply: (flags, value) => {
      const format = FORMATS.get(value);
      if (format !== undefined) flags.format = format;
      else
        throw new FlagError(
          `unknown format "${value}": ${[...FORMATS.keys()].join(", ")}`,
          EXIT.CANNOT,
          true,
        );
    },
  },
  ...PLUGIN_FLAGS,
  switchRow(["strict"], "treat warnings as errors", (flags, on) => {
    flags.strict = on;
  }),
  {
    names: ["dns.port", "p"],
    value: "PORT",
    about: "port for server blocks without a port (default 53)",
    apply: (flags, value) => {
      flags.port = parsePort("dns.port", value);
    },
  },
  switchRow(["no-files"], "do not check the files that the Corefile names", (flags, on) => {
    flags.files = !on;
  }),
  switchRow(["help", "h"], "show this help", (flags, on) => {
    flags.help = on;
  }),
];

/** @returns the exit code: 0 clean or only warnings, 1 errors, 2 nothing could be checked */
export async function check(argv: readonly string[]): Promise<number> {
  try {
    return await run(argv);
  } catch (error) {
    if (error instanceof FlagError) {
      process.stderr.write(`${error.message}\n${error.showUsage ? usage() : ""}`);
    } else if (
      error instanceof UnreadableCorefile ||
      error instanceof PluginListError ||
      error instanceof HelmValuesError ||
      // Compared by name, because importing the class would load the YAML parser.
      (error instanceof Error && error.name === "NoCorefileInYaml")
    ) {
      process.stderr.write(`${error.message}\n`);
    } else throw error;
    return EXIT.CANNOT;
  }
}

async function run(argv: readonly string[]): Promise<number> {
  const format = FORMATS.get("human");
  if (format === undefined) throw new RangeError("there is no format for people");
  const flags: CheckFlags = {
    ...defaultPluginFlags(),
    conf: [],
    format,
    strict: false,
    port: 53,
    files: true,
    help: false,
  };
  const named = parseFlags(CHECK_FLAGS, flags, argv, true);
  if (flags.help) {
    process.stdout.write(usage());
    return EXIT.CLEAN;
  }
  const words = [...flags.conf, ...named];
  const given = await readGivenFiles(words.length > 0 ? words : [defaultFile()]);
  const checked = await checkFiles(given, {
    registryFor: (file) => pluginRegistry(flags, file),
    port: flags.port,
    files: flags.files,
  });
  const files = checked.map((file, index): CheckedFile => {
    const origin = given[index];
    const isForServer =
      origin !== undefined && (hasNameOfCorefile(origin) || (flags.conf.length === 1 && index === 0));
    const diagnostics =
      file.form !== undefined && isForServer
        ? [yamlForServer(file.file), ...file.diagnostics]
        : file.diagnostics;
    return { ...file, diagnostics: flags.strict ? diagnostics.filter(isFault) : diagnostics };
  });
  const print = await flags.format();
  process.stdout.write(print(files, wantsColour(process.stdout, process.env)));
  const diagnostics = files.flatMap((file) => file.diagnostics);
  const isFaulty = diagnostics.some(({ severity }) => flags.strict || severity === "error");
  return isFaulty ? EXIT.FAULTY : EXIT.CLEAN;
}

/** Reported for YAML given with `-conf`: only the commands read YAML. */
export function yamlForServer(file: string): Diagnostic {
  return {
    code: "CHECK_YAML_FOR_SERVER",
    severity: "warning",
    message: "the server refuses this file: it is YAML that holds a Corefile, not a Corefile",
    span: { file, line: 1, column: 1, length: 1 },
    notes: ["for `-conf`, name a file that holds only the text of the key `Corefile`"],
  };
}

/** An import with a pattern is optional: its author expects that no file may match. */
function isFault({ code }: Diagnostic): boolean {
  return code !== "COREFILE_IMPORT_NO_MATCH";
}

function defaultFile(): string {
  if (existsSync("Corefile")) return "Corefile";
  throw new FlagError("there is no Corefile here: name the file to check", EXIT.CANNOT, true);
}

function usage(): string {
  const text = [
    "portolan check finds errors in Corefiles. It opens no socket and starts no plugin.",
    "",
    "Usage: portolan check [-format FORMAT] [-strict] [-no-files] [-conf COREFILE] [COREFILE...]",
    "",
    "Without COREFILE it checks ./Corefile; - is standard input. COREFILE may be YAML with a Corefile, a ConfigMap such as coredns-custom, or a directory of such files. Files that are given together import from one another as in the cluster.",
    "",
    ...flagLines(CHECK_FLAGS),
    "",
    exitCodesLine("check"),
    "",
  ];
  return fitted(text.join("\n"));
}
