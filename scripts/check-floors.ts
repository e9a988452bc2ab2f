// The rules of src/ that compiler and linters do not know. Says which files break one, and ends with 1 if any does.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { checkLayout, checkSource, type Violation } from "./lib/floors.ts";

const root = process.argv[2] ?? dirname(dirname(fileURLToPath(import.meta.url)));
const violations = checkTree(join(root, "src"));
for (const { path, line, message } of violations)
  console.log(`src/${path}${line > 0 ? `:${line}` : ""}: ${message}`);
process.exitCode = violations.length > 0 ? 1 : 0;

function checkTree(src: string): Violation[] {
  const paths = readdirSync(src, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(src, join(entry.parentPath, entry.name)).replaceAll(sep, "/"))
    .filter((path) => !path.includes("/fixtures/"))
    .sort();
  const sources = paths.filter((path) => path.endsWith(".ts"));
  if (sources.length === 0) throw new Error(`no TypeScript in ${src}`);
  return [
    ...checkLayout(paths),
    ...sources.flatMap((path) => checkSource(path, readFileSync(join(src, path), "utf8"))),
  ];
}
