// The repository explains itself: each path, link and anchor in comments and pages leads to something in it. Says which do not, and ends with 1
// if there is any.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { checkReferences, checkTitles } from "./lib/references.ts";

const FOLDERS = ["src", "test", "scripts", "bench", "docs", "examples", "deploy", "changes"];
/** Recorded answers, and files with mistakes on purpose. */
const SKIPPED = /(?:^|\/)(?:vectors|node_modules)\/|^scripts\/(?:lib\/references|check-references)\b/;

const root = process.argv[2] ?? dirname(dirname(fileURLToPath(import.meta.url)));

const paths = [
  ...FOLDERS.flatMap((folder) => filesIn(folder)),
  ...readdirSync(root).filter((name) => name.endsWith(".md")),
].filter((path) => /\.(?:ts|tsx|mjs|md|proto|cfg|c)$/.test(path) && !SKIPPED.test(path));
if (paths.length === 0) throw new Error(`nothing to check in ${root}`);

const violations = paths.sort().flatMap((path) => {
  const text = readFileSync(join(root, path), "utf8");
  const ofReferences = checkReferences(path, text, read);
  return path.endsWith(".test.ts") ? [...ofReferences, ...checkTitles(path, text)] : ofReferences;
});
for (const { path, line, message } of violations) console.log(`${path}:${line}: ${message}`);
process.exitCode = violations.length > 0 ? 1 : 0;

function filesIn(folder: string): string[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).replaceAll(sep, "/"));
}

function read(path: string): string | undefined {
  const stats = statSync(join(root, path), { throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  return stats.isFile() ? readFileSync(join(root, path), "utf8") : "";
}
