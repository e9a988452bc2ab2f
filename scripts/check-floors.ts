// The rules of src/ that compiler and linters do not know. Says which files break one, and ends with 1 if any does.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { CONTRACT, checkContractImports, contractNames } from "./lib/contract.ts";
import { checkLayout, checkSource, type Violation } from "./lib/floors.ts";
import { circles, importGraph } from "./lib/import-graph.ts";
import { checkTypeNames } from "./lib/type-names.ts";

const root = process.argv[2] ?? dirname(dirname(fileURLToPath(import.meta.url)));
const violations = checkTree(join(root, "src"));
for (const { path, line, message } of violations)
  console.log(`src/${path}${line > 0 ? `:${line}` : ""}: ${message}`);
const rounds = checkCircles(["src", "bench", "test", "scripts"]);
for (const line of rounds) console.log(line);
process.exitCode = violations.length + rounds.length > 0 ? 1 : 0;

/** Files that import each other hold no order for a reader, whatever the loader makes of them. */
function checkCircles(folders: readonly string[]): string[] {
  const sources = new Map<string, string>();
  for (const folder of folders) {
    if (!existsSync(join(root, folder))) continue;
    for (const entry of readdirSync(join(root, folder), { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || !/\.(ts|mjs)$/.test(entry.name)) continue;
      const path = join(entry.parentPath, entry.name);
      sources.set(relative(root, path).replaceAll(sep, "/"), readFileSync(path, "utf8"));
    }
  }
  return circles(importGraph(sources)).map((group) => `circle of imports: ${group.join(", ")}`);
}

function checkTree(src: string): Violation[] {
  const paths = readdirSync(src, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(src, join(entry.parentPath, entry.name)).replaceAll(sep, "/"))
    .filter((path) => !path.includes("/fixtures/"))
    .sort();
  const sources = paths.filter((path) => path.endsWith(".ts"));
  if (sources.length === 0) throw new Error(`no TypeScript in ${src}`);
  const texts = new Map(sources.map((path) => [path, readFileSync(join(src, path), "utf8")]));
  const contract = contractNames(texts.get(CONTRACT) ?? "");
  return [
    ...checkLayout(paths),
    ...[...texts].flatMap(([path, source]) => [
      ...checkSource(path, source),
      ...checkContractImports(path, source, contract),
    ]),
    ...checkTypeNames(texts),
  ];
}
