/** Finds the zone files of a folder: names that match a pattern, each with the origin that follows from its name. */
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
  /** In a folder whose name begins with `..`: there Kubernetes keeps the link targets of a mounted ConfigMap. */
  readonly isBehindLinks: boolean;
}

/** Deeper nesting than people make by hand. */
const MAX_DEPTH = 32;

/**
 * Walks through the folder in the order of names, including subfolders; those whose names begin with `..` come last. Links to files
 * are followed, links to folders are not, except for the folder itself.
 * @throws the error of the file system for the folder itself
 */
export async function findZoneFiles(folder: ZoneFolder): Promise<FoundZoneFile[]> {
  const found: FoundZoneFile[] = [];
  await walk(await realpath(folder.directory), folder, found, { depth: 0, isBehindLinks: false });
  return found;
}

interface Place {
  readonly depth: number;
  readonly isBehindLinks: boolean;
}

async function walk(path: string, folder: ZoneFolder, found: FoundZoneFile[], place: Place): Promise<void> {
  const { depth, isBehindLinks } = place;
  const entries = await readdir(path, { withFileTypes: true });
  entries.sort(
    (left, right) => Number(isHidden(left)) - Number(isHidden(right)) || (left.name < right.name ? -1 : 1),
  );
  for (const entry of entries) {
    const inside = join(path, entry.name);
    if (entry.isDirectory()) {
      // A folder deleted during the walk has no files any more.
      const below = { depth: depth + 1, isBehindLinks: isBehindLinks || isHidden(entry) };
      if (depth < MAX_DEPTH) await walk(inside, folder, found, below).catch(() => undefined);
      continue;
    }
    const origin = originOf(entry.name, folder);
    if (origin !== undefined && (await isFile(inside))) found.push({ file: inside, origin, isBehindLinks });
  }
}

function isHidden({ name }: { readonly name: string }): boolean {
  return name.startsWith("..");
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
