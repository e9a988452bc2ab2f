// Finds the habits that docs/contributing/style.md refuses. Prints each with its place, and ends with 1 if there is any.
// node scripts/check-style.ts [ROOT [PATH...]]: PATH is a file or a folder, relative to ROOT.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { checkStyle } from "./lib/style.ts";

const FOLDERS = ["src", "test", "scripts", "bench", "bin", "docs", "examples", "deploy"];
/** Recorded answers, the rules themselves, a test with mistakes on purpose, and past changes. */
const SKIPPED =
  /(?:^|\/)(?:vectors|fixtures|node_modules)\/|^scripts\/(?:lib\/style|run-tests\.test)\b|^docs\/contributing\/style\.md$|^CHANGELOG\.md$/;

const [root = dirname(dirname(fileURLToPath(import.meta.url))), ...chosen] = process.argv.slice(2);
const places =
  chosen.length > 0 ? chosen : [...FOLDERS, ...readdirSync(root).filter((name) => name.endsWith(".md"))];

const paths = places
  .flatMap((place) => filesAt(place))
  .filter((path) => /\.(?:ts|tsx|mjs|md)$/.test(path) && !SKIPPED.test(path));
if (paths.length === 0) throw new Error(`nothing to check in ${root}`);

const violations = paths.sort().flatMap((path) => checkStyle(path, readFileSync(join(root, path), "utf8")));
for (const { path, line, message } of violations) console.log(`${path}:${line}: ${message}`);
process.exitCode = violations.length > 0 ? 1 : 0;

function filesAt(place: string): string[] {
  const stats = statSync(join(root, place), { throwIfNoEntry: false });
  if (stats === undefined) return [];
  if (stats.isFile()) return [place];
  return readdirSync(join(root, place), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).replaceAll(sep, "/"));
}
