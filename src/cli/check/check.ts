/** `portolan check`: all that is wrong with Corefiles, without running them. */
import { existsSync } from "node:fs";
import { basename } from "node:path";
import type { Diagnostic } from "../../corefile/diagnostic.ts";
import { nodeHost } from "../../corefile/node-host.ts";
import { SystemClock } from "../../lib/time/clock.ts";
import { HelmValuesError } from "../../predecessors/migrate/from-helm-values.ts";
import { type CorefileSource, inspectConfiguration } from "../../server/configuration/configuration.ts";
import { systemRandom, thisMachine } from "../../server/configuration/machine.ts";
import { PluginListError, type PluginRegistry } from "../../server/configuration/plugin-registry.ts";
import { isStandardInput, readCorefile, readStandardInput, UnreadableCorefile } from "../corefile-source.ts";
import { exitCodesLine } from "../exit-codes.ts";
import { FlagError, type FlagRow, flagLines, parseFlags, parsePort, switchRow } from "../flag-table.ts";
import { defaultPluginFlags, PLUGIN_FLAGS, type PluginFlags, pluginRegistry } from "../plugin-list.ts";
import { fitted, wantsColour } from "../terminal.ts";
import type { CheckedFile } from "./checked-file.ts";
import type { TranslatedCorefile } from "./corefile-in-helm-values.ts";
import { FORMATS, type Format } from "./formats.ts";

interface CheckFlags extends PluginFlags {
  /** As the server takes it; empty for none. */
  conf: string;
  format: () => Promise<Format>;
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
    about: 'Corefile to check, as for the server; "stdin" reads it from standard input',
    apply: (flags, value) => {
      flags.conf = value;
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

/** @returns the exit code: 0 clean or warnings alone, 1 errors, 2 where nothing could be checked */
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
      // By its name: its module loads the parser of YAML.
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
    conf: "",
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
  const words = flags.conf === "" ? named : [flags.conf, ...named];
  // All are read before the first is checked: a name mistyped in a script ends it at once.
  const sources = (words.length > 0 ? words : [defaultFile()]).map((word) =>
    word === "-" || isStandardInput(word) ? readStandardInput() : readCorefile(word),
  );
  const files: CheckedFile[] = [];
  for (const given of sources) {
    const { source, relocate } = await corefileOf(given);
    const registry = await pluginRegistry(flags, given.file === "stdin" ? undefined : given.file);
    const found = await checkFile(source, registry, flags);
    const inPlace = relocate === undefined ? found : relocatedFile(found, given, relocate);
    const isYaml = source.text !== given.text;
    const isForServer = flags.conf !== "" || basename(given.file) === "Corefile";
    const checked = {
      ...inPlace,
      ...(isYaml && { form: "YAML" as const }),
      ...(isYaml && isForServer && { diagnostics: [yamlForServer(given.file), ...inPlace.diagnostics] }),
    };
    files.push(flags.strict ? { ...checked, diagnostics: checked.diagnostics.filter(isFault) } : checked);
  }
  const print = await flags.format();
  process.stdout.write(print(files, wantsColour(process.stdout, process.env)));
  const diagnostics = files.flatMap((file) => file.diagnostics);
  const isFaulty = diagnostics.some(({ severity }) => flags.strict || severity === "error");
  return isFaulty ? EXIT.FAULTY : EXIT.CLEAN;
}

/** Only `check` reads YAML. */
export function yamlForServer(file: string): Diagnostic {
  return {
    code: "CHECK_YAML_FOR_SERVER",
    severity: "warning",
    message: "the server refuses this file: it is YAML that holds a Corefile, not a Corefile",
    span: { file, line: 1, column: 1, length: 1 },
    notes: ["for `-conf`, name a file that holds only the text of the key `Corefile`"],
  };
}

interface Given {
  readonly source: CorefileSource;
  /** Where the Corefile is made of what was given: a finding at its place there. */
  readonly relocate?: TranslatedCorefile["relocate"];
}

const MAYBE_KUBERNETES = /^[\s{]*["']?(apiVersion|kind|data|metadata|items)["']?\s*:/m;

/** ConfigMaps and values of Helm are YAML, the parser of which is not loaded for Corefiles. */
async function corefileOf(source: CorefileSource): Promise<Given> {
  if (/^[ \t]*["']?servers["']?\s*:/m.test(source.text)) {
    const { corefileInHelmValues } = await import("./corefile-in-helm-values.ts");
    const translated = corefileInHelmValues(source);
    if (translated !== undefined) return translated;
  }
  if (!MAYBE_KUBERNETES.test(source.text)) return { source };
  const { corefileInYaml } = await import("./corefile-in-yaml.ts");
  return { source: corefileInYaml(source) };
}

function relocatedFile(
  { file, diagnostics, textOf }: CheckedFile,
  given: CorefileSource,
  relocate: TranslatedCorefile["relocate"],
): CheckedFile {
  return {
    file,
    diagnostics: diagnostics.map(relocate),
    textOf: (name) => (name === given.file ? given.text : textOf(name)),
  };
}

async function checkFile(
  source: CorefileSource,
  registry: PluginRegistry,
  flags: Pick<CheckFlags, "port" | "files">,
): Promise<CheckedFile> {
  const options = {
    host: nodeHost,
    registry,
    machine: thisMachine(process.env),
    defaultPort: flags.port,
  };
  let { diagnostics } = await inspectConfiguration(source, options);
  if (flags.files && diagnostics.every(({ severity }) => severity === "warning")) {
    const { examineFiles } = await import("../../server/offline-server.ts");
    const faults = await examineFiles({
      ...options,
      source,
      clock: new SystemClock(),
      random: systemRandom(),
    });
    diagnostics = [...diagnostics, ...faults].sort(
      ({ span: one }, { span: other }) =>
        Number(one.file === other.file) * (one.line - other.line || one.column - other.column),
    );
  }
  const texts = new Map<string, string | undefined>([[source.file, source.text]]);
  return {
    file: source.file,
    diagnostics,
    textOf(file) {
      if (!texts.has(file)) {
        const content = nodeHost.readFile(file);
        texts.set(file, content.kind === "text" ? content.text : undefined);
      }
      return texts.get(file);
    },
  };
}

/** An import of a pattern is optional: who writes one expects that no file may match. */
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
    "Without COREFILE it checks ./Corefile; - is standard input.",
    "",
    ...flagLines(CHECK_FLAGS),
    "",
    exitCodesLine("check"),
    "",
  ];
  return fitted(text.join("\n"));
}
