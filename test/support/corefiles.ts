/** The Corefiles of the repository: files of that name, and the examples in its pages. */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { projectRoot } from "./portolan.ts";

export interface RepositoryCorefile {
  /** The file, and for an example the line in it. */
  readonly place: string;
  readonly text: string;
}

const FOLDERS = ["deploy", "docs", "examples", "src", "test", "bench"];

export function repositoryCorefiles(): RepositoryCorefile[] {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(projectRoot, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.parentPath.includes("node_modules"))
      .map((entry) => join(entry.parentPath, entry.name)),
  );
  return files.sort().flatMap((file) => {
    const place = relative(projectRoot, file);
    if (/(^|\/)Corefile[^/]*$|\.corefile$/.test(file) && !/\.(ts|5)$/.test(file))
      return [{ place, text: readFileSync(file, "utf8") }];
    return file.endsWith(".md") ? examplesIn(place, readFileSync(file, "utf8")) : [];
  });
}

function examplesIn(place: string, page: string): RepositoryCorefile[] {
  return [...page.matchAll(/^```corefile\n([\s\S]*?)^```$/gm)].map(({ 1: text = "", index }) => ({
    place: `${place}:${page.slice(0, index).split("\n").length}`,
    text,
  }));
}
