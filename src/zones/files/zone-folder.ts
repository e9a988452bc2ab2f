/** The zone files of a folder: those whose names match a pattern, each with the origin that follows from its name. */
import { readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { Name } from "../../dns/name.ts";
import type { Pattern } from "../../lib/text/pattern.ts";

export interface ZoneFolder {
  readonly directory: string;
  readonly pattern: Pattern;
  /** `{1}` and `{name}` stand for the groups of the pattern. */
  readonly origin: string;
}

export interface FoundZoneFile {
  readonly file: string;
  readonly origin: Name;
}

/** More folders inside each other than anybody makes by hand. */
const MAX_DEPTH = 32;

/**
 * Walks through the folder in the order of names, subfolders included. Links to files are followed, links to folders are not, except for the
 * folder itself.
 * @throws the error of the file system for the folder itself
 */
export async function findZoneFiles(folder: ZoneFolder): Promise<FoundZoneFile[]> {
  const found: FoundZoneFile[] = [];
  await walk(await realpath(folder.directory), folder, found, 0);
  return found;
}

async function walk(path: string, folder: ZoneFolder, found: FoundZoneFile[], depth: number): Promise<void> {
  const entries = await readdir(path, { withFileTypes: true });
  entries.sort((left, right) => (left.name < right.name ? -1 : 1));
  for (const entry of entries) {
    const inside = join(path, entry.name);
    if (entry.isDirectory()) {
      // A folder that went away meanwhile has no files any more.
      if (depth < MAX_DEPTH) await walk(inside, folder, found, depth + 1).catch(() => undefined);
      continue;
    }
    const origin = originOf(entry.name, folder);
    if (origin !== undefined && (await isFile(inside))) found.push({ file: inside, origin });
  }
}

function originOf(fileName: string, { pattern, origin }: ZoneFolder): Name | undefined {
  const match = pattern.match(fileName);
  if (match === undefined) return undefined;
  const text = origin.replaceAll(
    /\{(\w+)\}/g,
    (whole, group: string) =>
      match.groups[/^\d+$/.test(group) ? Number(group) : (pattern.groupNumbers.get(group) ?? -1)] ?? whole,
  );
  return Name.tryParse(text.endsWith(".") ? text : `${text}.`);
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}
