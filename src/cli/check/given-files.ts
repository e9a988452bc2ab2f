/** Reads the files named on the command line: Corefiles, plain or in YAML, and folders of them. */
import { readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import type { Diagnostic } from "../../corefile/diagnostic.ts";
import type { CorefileSource } from "../../server/configuration/configuration.ts";
import type { ImportableKey, UnusableKey } from "../config-maps/config-maps.ts";
import { isStandardInput, readCorefile, readStandardInput, UnreadableCorefile } from "../corefile-source.ts";
import type { TranslatedCorefile } from "./corefile-in-helm-values.ts";

export interface GivenCorefile {
  readonly source: CorefileSource;
  /** Set when the Corefile is generated from the given file: maps a finding to its place in that file. */
  readonly relocate?: TranslatedCorefile["relocate"];
  readonly siblings: readonly ImportableKey[];
}

export interface GivenFile {
  /** The text as read. */
  readonly source: CorefileSource;
  readonly corefiles: readonly GivenCorefile[];
  /** Parts of a Corefile that another Corefile imports. */
  readonly custom: readonly ImportableKey[];
  /** Faults of the document itself. */
  readonly faults?: readonly Diagnostic[];
}

/**
 * Reads all files before the first is checked, so that a mistyped name in a script fails at once.
 * @throws UnreadableCorefile, HelmValuesError, NoCorefileInYaml
 */
export async function readGivenFiles(words: readonly string[]): Promise<GivenFile[]> {
  const files: GivenFile[] = [];
  for (const word of words) {
    if (word === "-" || isStandardInput(word)) files.push(await givenFile(readStandardInput()));
    else if (isFolder(word)) files.push(...(await filesOfFolder(word)));
    else files.push(await givenFile(readCorefile(word)));
  }
  return files;
}

/** A path that cannot be followed counts as a file, so that reading it reports the fault. */
function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** A folder of manifests has few files. */
const MAX_FILES = 1_000;

/** Takes the files of a folder that kubectl would take, and Corefiles. Skips files about other things. */
async function filesOfFolder(folder: string): Promise<GivenFile[]> {
  const names = readdirSync(folder)
    .filter((name) => name === "Corefile" || /\.(ya?ml|json)$/.test(name))
    .filter((name) => !isFolder(join(folder, name)))
    .sort();
  if (names.length > MAX_FILES)
    throw new UnreadableCorefile(folder, `a directory of more than ${MAX_FILES} YAML files`);
  const files: GivenFile[] = [];
  for (const name of names) {
    const file = await fileOfFolder(join(folder, name), name !== "Corefile");
    if (file.corefiles.length + file.custom.length + (file.faults?.length ?? 0) > 0) files.push(file);
  }
  if (files.length === 0)
    throw new UnreadableCorefile(folder, "a directory without a Corefile, and without YAML that has one");
  return files;
}

/** A file that cannot be read is a finding, so that the others are checked. */
async function fileOfFolder(path: string, isYaml: boolean): Promise<GivenFile> {
  let source: CorefileSource = { text: "", file: path };
  try {
    source = readCorefile(path);
    if (isYaml && !MENTIONS_COREFILE.test(source.text)) return { source, corefiles: [], custom: [] };
    return await givenFile(source, isYaml);
  } catch (error) {
    const fault = faultIn(path, error);
    if (fault === undefined) throw error;
    return { source, corefiles: [], custom: [], faults: [fault] };
  }
}

/** `undefined` for an error that says nothing about the file. */
function faultIn(file: string, error: unknown): Diagnostic | undefined {
  if (!(error instanceof Error)) return undefined;
  const at = { file, line: 1, column: 1, length: 1 };
  if (error instanceof UnreadableCorefile)
    return { code: "CHECK_UNREADABLE", severity: "error", message: `not checked: ${error.reason}`, span: at };
  // Known by a field, because importing the class would load the YAML parser.
  if (error.name !== "NoCorefileInYaml" || !("reason" in error) || !("place" in error)) return undefined;
  const [line, column] = error.place as readonly [line: number, column: number];
  const span = { ...at, line, column };
  return { code: "CHECK_NOT_YAML", severity: "error", message: String(error.reason), span };
}

const MENTIONS_COREFILE =
  /\b(Corefile|externalCoreFile|corefile|servers|coredns-custom|operator\.openshift\.io)\b|\.(server|override)["']?[ \t]*:/;
const MAYBE_KUBERNETES = /^[\s{]*["']?(apiVersion|kind|data|metadata|items|corefile)["']?\s*:/m;
/** `servers` of a Helm chart, or the DNS object of OpenShift. */
const HAS_VALUES = /^[ \t]*["']?servers["']?\s*:|["']?apiVersion["']?\s*:\s*["']?operator\.openshift\.io\//m;

/** A server may have a Corefile with such a name, too: its first line is none of these. */
const BEGINS_AS_YAML = /^(?:\s|#.*)*(?:---|[[{]\s*["']|-\s|["']?[\w./-]+["']?[ \t]*:(?:\s|$))/;

function valueIsNotText({ key, file, line, column }: UnusableKey): Diagnostic {
  return {
    code: "CHECK_VALUE_NOT_TEXT",
    severity: "error",
    message: `the value of '${key}' is not a string: Kubernetes refuses this ConfigMap`,
    span: { file, line, column, length: key.length },
    expected: "text, after '|' or in quotes",
  };
}

/**
 * ConfigMaps and Helm values are YAML. Its parser is not loaded for plain Corefiles.
 * @param isYaml whether a text without a Corefile in it cannot itself be a Corefile
 */
export async function givenFile(source: CorefileSource, isYaml = false): Promise<GivenFile> {
  if (HAS_VALUES.test(source.text)) {
    const { corefileInHelmValues } = await import("./corefile-in-helm-values.ts");
    const translated = corefileInHelmValues(source);
    if (translated !== undefined) return { source, corefiles: [{ ...translated, siblings: [] }], custom: [] };
  }
  const itself = { source, corefiles: isYaml ? [] : [{ source, siblings: [] }], custom: [] };
  const hasNameOfYaml = /\.(ya?ml|json)$/.test(source.file);
  if (!MAYBE_KUBERNETES.test(source.text) && !(hasNameOfYaml && BEGINS_AS_YAML.test(source.text)))
    return itself;
  const { readConfigMaps } = await import("../config-maps/config-maps.ts");
  const { corefiles, custom, notText, missing } = readConfigMaps(source);
  if (corefiles.length > 0 || custom.length > 0 || notText.length > 0)
    return { source, corefiles, custom, faults: notText.map(valueIsNotText) };
  if (missing !== undefined && !isYaml) throw missing;
  return itself;
}

/** Whether the file is named `Corefile`, as the server's is. */
export function hasNameOfCorefile({ source }: GivenFile): boolean {
  return basename(source.file) === "Corefile";
}

/** Whether the whole text is a Corefile, or a part of one that is imported, and not YAML around it. */
export async function isPlainCorefile(source: CorefileSource): Promise<boolean> {
  try {
    const { corefiles, custom } = await givenFile(source);
    return custom.length === 0 && corefiles.every((corefile) => corefile.source.text === source.text);
  } catch (error) {
    // YAML with nothing to check in it. Compared by name, because importing the classes would load the YAML parser.
    if (error instanceof Error && /^(NoCorefileInYaml|HelmValuesError)$/.test(error.name)) return false;
    throw error;
  }
}
