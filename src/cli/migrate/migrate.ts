/**
 * `portolan migrate`: turns Corefiles of older versions, and the configurations of predecessors, into a current Corefile, and back.
 */
import { existsSync } from "node:fs";
import { type Diagnostic, formatDiagnostic, formatPlace } from "../../corefile/diagnostic.ts";
import type { CorefileHost } from "../../corefile/host.ts";
import { nodeHost } from "../../corefile/node-host.ts";
import { parseCorefile } from "../../corefile/parser.ts";
import { isObject } from "../../kubernetes/objects/json.ts";
import { isDefaultCorefile } from "../../predecessors/migrate/default-corefiles.ts";
import { downgrade } from "../../predecessors/migrate/downgrade.ts";
import { fromHelmValues, HelmValuesError } from "../../predecessors/migrate/from-helm-values.ts";
import { fromKubeDns } from "../../predecessors/migrate/from-kube-dns.ts";
import { type Migrated, type Notice, sentenceOf } from "../../predecessors/migrate/notice.ts";
import { upgrade } from "../../predecessors/migrate/upgrade.ts";
import { isUpTo, readVersion, TODAY, VERSIONS, VersionError } from "../../predecessors/migrate/versions.ts";
import { type CorefileSource, inspectConfiguration } from "../../server/configuration/configuration.ts";
import { thisMachine } from "../../server/configuration/machine.ts";
import type { PluginRegistry } from "../../server/configuration/plugin-registry.ts";
import { withConfigMaps } from "../config-maps/config-map-host.ts";
import type { ConfigMaps, ImportableKey } from "../config-maps/config-maps.ts";
import { isStandardInput, readCorefile, readStandardInput, UnreadableCorefile } from "../corefile-source.ts";
import { exitCodesLine } from "../exit-codes.ts";
import { FlagError, flagLines, parseFlags } from "../flag-table.ts";
import { defaultPluginFlags, pluginRegistry } from "../plugin-list.ts";
import { fitted } from "../terminal.ts";
import {
  defaultMigrateFlags,
  MIGRATE_FLAGS,
  MIGRATE_VERBS,
  type MigrateFlags,
  type MigrateVerb,
} from "./flags.ts";
import { InputError, type MigrationInput, nameOfCorefileIn, readInput, readLive } from "./input.ts";

const EXIT = { DONE: 0, FAULTY: 1, CANNOT: 2 } as const;

/** @returns the exit code: 0 done, 1 if the result does not pass `check`, 2 if nothing could be migrated */
export async function migrate(argv: readonly string[]): Promise<number> {
  try {
    return await run(argv);
  } catch (error) {
    if (error instanceof FlagError) {
      process.stderr.write(`${error.message}\n${error.showUsage ? usage() : ""}`);
    } else if (
      error instanceof UnreadableCorefile ||
      error instanceof InputError ||
      error instanceof VersionError ||
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
  const flags = defaultMigrateFlags();
  const words = parseFlags(MIGRATE_FLAGS, flags, argv, true);
  if (flags.help) {
    process.stdout.write(usage());
    return EXIT.DONE;
  }
  const verb = MIGRATE_VERBS.find((each) => each === words[0]);
  const [file = "", ...more] = verb === undefined ? words : words.slice(1);
  if (more.length > 0)
    throw new FlagError(`one file at a time, not also ${more.join(" ")}`, EXIT.CANNOT, true);
  if (flags.toValues) return writeValues(verb, flags, file === "" ? flags.corefile : file);
  return carryOut(verb ?? "migrate", flags, file === "" ? flags.corefile : file);
}

/** The values for this project's chart, and a line for each value that is not the same there. */
async function writeValues(
  verb: MigrateVerb | undefined,
  { configmap, format }: MigrateFlags,
  file: string,
): Promise<number> {
  if ((verb !== undefined && verb !== "migrate") || configmap !== "" || file === "")
    throw new FlagError("-to-values takes a file with values of CoreDNS's Helm chart", EXIT.CANNOT, true);
  const input = readInput(readFile(file), "helm-values");
  if (input.kind !== "helm-values" || !isObject(input.values))
    throw new InputError(`${file}: no values of a Helm chart`);
  const { toChartValues } = await import("../../predecessors/migrate/to-chart-values.ts");
  const { values, notices } = toChartValues(input.values);
  if (format === "json") {
    process.stdout.write(`${JSON.stringify({ values, notices }, undefined, 2)}\n`);
  } else {
    const { stringify } = await import("yaml");
    process.stdout.write(stringify(values, { lineWidth: 0 }));
    for (const { path, severity, reason } of notices)
      process.stderr.write(`${path}: ${severity === "renamed" ? "" : `${severity}: `}${reason}\n`);
  }
  return notices.some(({ severity }) => severity === "refused") ? EXIT.FAULTY : EXIT.DONE;
}

async function carryOut(verb: MigrateVerb, flags: MigrateFlags, file: string): Promise<number> {
  const kind = flags.from === "kube-dns" || flags.from === "helm-values" ? flags.from : undefined;
  const from = kind === undefined && flags.from !== "" ? readVersion(flags.from) : undefined;
  const to = readVersion(flags.to);
  if (verb === "validversions") {
    process.stdout.write(
      flags.format === "json" ? `${JSON.stringify(VERSIONS)}\n` : `${VERSIONS.join("\n")}\n`,
    );
    return EXIT.DONE;
  }
  if (verb === "released") {
    process.stdout.write(`${VERSIONS.includes(flags.from.replace(/^v/, ""))}\n`);
    return EXIT.DONE;
  }
  const given = flags.configmap === "" ? readFile(file) : undefined;
  const maps = kind === undefined ? await configMapsIn(given) : undefined;
  if (given !== undefined && maps !== undefined && maps.corefiles.length === 0)
    return carryOutForKeys(verb, { flags, from, to }, given, maps.custom);
  const input =
    given === undefined
      ? await readLive(flags.configmap, flags.kubeconfig, kind)
      : readInput(given, kind ?? (from === undefined ? undefined : corefileKind(file)));
  const name = given?.file ?? flags.configmap;
  const siblings = maps?.corefiles[0]?.siblings ?? [];
  const host = withConfigMaps(nodeHost, name, { siblings, custom: maps?.custom ?? [] });
  const registry = await pluginRegistry(defaultPluginFlags(), existsSync(name) ? name : undefined);
  const directives = registry.names;
  if (verb === "default") {
    const { text, file: place } = corefileOf(input, name);
    const { corefile } = parseCorefile(text, { file: place, host });
    process.stdout.write(`${isDefaultCorefile(corefile, flags.k8sversion || undefined)}\n`);
    return EXIT.DONE;
  }
  const isDown = verb === "downgrade" || (from !== undefined && !isUpTo(from, to));
  const migrated = convert(input, name, { flags, from, to, isDown, directives, host });
  const result = { text: migrated.text, file: `${name} (result)` };
  // The result is for an older CoreDNS, which this server cannot check.
  const diagnostics = isDown || to !== TODAY ? [] : await check(result, registry, host);
  return show(verb, result, migrated.notices, { diagnostics, host }, flags.format);
}

/** ConfigMaps with parts of a Corefile, or with a Corefile that imports such parts; `undefined` if there are no parts. */
async function configMapsIn(given: CorefileSource | undefined): Promise<ConfigMaps | undefined> {
  if (given === undefined || !/\.(server|override)["']?[ \t]*:|coredns-custom/.test(given.text))
    return undefined;
  const { readConfigMaps } = await import("../config-maps/config-maps.ts");
  const maps = readConfigMaps(given);
  return maps.custom.length === 0 ? undefined : maps;
}

/** Writes the ConfigMap again. The result is checked as AKS and k3s would import it. */
async function carryOutForKeys(
  verb: MigrateVerb,
  { flags, from, to }: Pick<Conversion, "flags" | "from" | "to">,
  given: CorefileSource,
  keys: readonly ImportableKey[],
): Promise<number> {
  if (verb === "default") {
    process.stdout.write("false\n");
    return EXIT.DONE;
  }
  const registry = await pluginRegistry(
    defaultPluginFlags(),
    existsSync(given.file) ? given.file : undefined,
  );
  const isDown = verb === "downgrade" || (from !== undefined && !isUpTo(from, to));
  const conversion = { flags, to, isDown, directives: registry.names, host: nodeHost };
  const { migrateKeys } = await import("./custom-keys.ts");
  // Defaults of newer versions belong only in whole server blocks.
  const migrated = migrateKeys(given, keys, (corefile, isWhole) =>
    convert({ kind: "corefile", source: corefile }, given.file, {
      ...conversion,
      from: isWhole || isDown ? from : undefined,
    }),
  );
  const { readConfigMaps } = await import("../config-maps/config-maps.ts");
  const { AKS_COREFILE } = await import("../config-maps/aks-corefile.ts");
  const result = { text: migrated.text, file: `${given.file} (result)` };
  const { custom } = readConfigMaps(result);
  const host = withConfigMaps(nodeHost, AKS_COREFILE.file, { siblings: [], custom });
  const diagnostics = isDown || to !== TODAY ? [] : await check(AKS_COREFILE, registry, host);
  return show(verb, result, migrated.notices, { diagnostics, host }, flags.format);
}

interface Conversion {
  readonly flags: MigrateFlags;
  readonly from: string | undefined;
  readonly to: string;
  readonly isDown: boolean;
  readonly directives: readonly string[];
  readonly host: CorefileHost;
}

function convert(input: MigrationInput, name: string, conversion: Conversion): Migrated {
  const { flags, from, to, isDown, directives, host } = conversion;
  const { deprecations, domain, wildcards } = flags;
  if (input.kind === "kube-dns") return fromKubeDns(input.config, { domain, wildcards });
  const { text, file } = corefileOf(input, name);
  const options = { file, host, to, directives };
  return isDown ? downgrade(text, options) : upgrade(text, { ...options, from, deprecations });
}

/** A file with a ConfigMap is read as one, whatever version its Corefile has. */
function corefileKind(file: string): "corefile" | undefined {
  return /\.(ya?ml|json)$/.test(file) || file === "" || file === "-" ? undefined : "corefile";
}

function readFile(file: string): CorefileSource {
  if (file === "-" || isStandardInput(file)) return readStandardInput();
  if (file !== "") return readCorefile(file);
  if (existsSync("Corefile")) return readCorefile("Corefile");
  throw new FlagError("there is no Corefile here: name the file to migrate", EXIT.CANNOT, true);
}

/** @param name name of the input; values are not a Corefile, so their result gets a name of its own */
function corefileOf(input: MigrationInput, name: string): CorefileSource {
  if (input.kind === "corefile") return input.source;
  if (input.kind === "helm-values")
    return { text: fromHelmValues(input.values), file: nameOfCorefileIn(name) };
  throw new InputError("kube-dns has no Corefile: 'migrate' makes one of its ConfigMap");
}

/** The errors of the result. `check` shows the warnings. */
async function check(
  result: CorefileSource,
  registry: PluginRegistry,
  host: CorefileHost,
): Promise<Diagnostic[]> {
  const { diagnostics } = await inspectConfiguration(result, {
    host,
    registry,
    machine: thisMachine(process.env),
    defaultPort: 53,
  });
  return diagnostics.filter(({ severity }) => severity === "error");
}

function show(
  verb: MigrateVerb,
  result: CorefileSource,
  notices: readonly Notice[],
  { diagnostics, host }: { readonly diagnostics: readonly Diagnostic[]; readonly host: CorefileHost },
  format: string,
): number {
  const code = diagnostics.length === 0 ? EXIT.DONE : EXIT.FAULTY;
  const writesText = verb === "migrate" || verb === "downgrade";
  const shown =
    verb === "unsupported" ? notices.filter(({ severity }) => severity === "unsupported") : notices;
  if (format === "json") {
    const report = {
      ...(writesText && { corefile: result.text }),
      notices: shown.map((notice) => noticeJson(notice)),
      errors: diagnostics.map(({ code: name, message, span }) => ({
        code: name,
        message,
        place: formatPlace(span),
      })),
    };
    process.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`);
    return code;
  }
  if (writesText) process.stdout.write(result.text);
  const out = writesText ? process.stderr : process.stdout;
  for (const notice of shown) out.write(`${noticeText(notice)}\n`);
  if (diagnostics.length > 0 && verb !== "unsupported")
    process.stderr.write("\nThe result does not start:\n");
  for (const diagnostic of diagnostics)
    process.stderr.write(`${formatDiagnostic(diagnostic, lineSource(diagnostic, result, host))}\n`);
  return code;
}

/** The text that an error points into: the result, or a file that it imports. */
function lineSource(
  { span }: Diagnostic,
  { text, file }: CorefileSource,
  host: CorefileHost,
): string | undefined {
  if (span.file === file) return text;
  const content = host.readFile(span.file);
  return content.kind === "text" ? content.text : undefined;
}

function noticeText(notice: Notice): string {
  const place = notice.span === undefined ? "" : `${formatPlace(notice.span)}: `;
  const first =
    notice.severity === "changed"
      ? `${place}note: ${notice.notes.join("; ")}`
      : `${place}${sentenceOf(notice)}`;
  const notes = notice.severity === "changed" ? [] : notice.notes.map((note) => `  note: ${note}`);
  return [first, ...notes].join("\n");
}

function noticeJson(notice: Notice) {
  const { severity, plugin, option, version, replacedBy, notes, span } = notice;
  return {
    severity,
    plugin,
    ...(option !== undefined && { option }),
    version,
    ...(replacedBy !== undefined && { replacedBy }),
    message: sentenceOf(notice),
    notes,
    ...(span !== undefined && { line: span.line, column: span.column }),
  };
}

function usage(): string {
  const text = [
    "portolan migrate turns Corefiles of older versions of CoreDNS, kube-dns's ConfigMap and values of CoreDNS's Helm chart into a current Corefile. Comments stay. It changes no file: the result goes to standard output, messages go to standard error.",
    "",
    "Usage: portolan migrate [VERB] [-from VERSION] [-to VERSION] [FILE]",
    "       portolan migrate -to-values VALUES-FILE",
    "",
    "The default FILE is ./Corefile; - is standard input.",
    "",
    "  migrate        writes the new Corefile (the default verb)",
    "  downgrade      writes a Corefile that CoreDNS of the version -to understands",
    "  deprecated     lists options that are deprecated, ignored, removed or new between both versions",
    "  unsupported    lists unknown directives and options",
    "  default        says whether the Corefile is the default of a release of Kubernetes",
    "  released       says whether -from is a release of CoreDNS",
    "  validversions  lists the versions",
    "",
    ...flagLines(MIGRATE_FLAGS),
    "",
    exitCodesLine("migrate"),
    "",
  ];
  return fitted(text.join("\n"));
}
