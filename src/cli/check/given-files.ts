/** Reads the files named on the command line: Corefiles, plain or in YAML, and folders of them. */
import { readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import type { CorefileSource } from "../../server/configuration/configuration.ts";
import type { ImportableKey } from "../config-maps/config-maps.ts";
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
    const source = readCorefile(join(folder, name));
    if (name !== "Corefile" && !MENTIONS_COREFILE.test(source.text)) continue;
    const file = await givenFile(source, name !== "Corefile");
    if (file.corefiles.length > 0 || file.custom.length > 0) files.push(file);
  }
  if (files.length === 0)
    throw new UnreadableCorefile(folder, "a directory without a Corefile, and without YAML that has one");
  return files;
}

const MENTIONS_COREFILE = /\b(Corefile|servers|coredns-custom)\b|\.(server|override)["']?[ \t]*:/;
const MAYBE_KUBERNETES = /^[\s{]*["']?(apiVersion|kind|data|metadata|items)["']?\s*:/m;

/**
 * ConfigMaps and Helm values are YAML. Its parser is not loaded for plain Corefiles.
 * @param isYaml whether a text without a Corefile in it cannot itself be a Corefile
 */
export async function givenFile(source: CorefileSource, isYaml = false): Promise<GivenFile> {
  if (/^[ \t]*["']?servers["']?\s*:/m.test(source.text)) {
    const { corefileInHelmValues } = await import("./corefile-in-helm-values.ts");
    const translated = corefileInHelmValues(source);
    if (translated !== undefined) return { source, corefiles: [{ ...translated, siblings: [] }], custom: [] };
  }
  const itself = { source, corefiles: isYaml ? [] : [{ source, siblings: [] }], custom: [] };
  if (!MAYBE_KUBERNETES.test(source.text)) return itself;
  const { readConfigMaps } = await import("../config-maps/config-maps.ts");
  const { corefiles, custom, missing } = readConfigMaps(source);
  if (corefiles.length > 0 || custom.length > 0) return { source, corefiles, custom };
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
