// What rests on undocumented behaviour is in src/runtime and in its register. Says which files break that, and ends with 1 if any does.
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runtimeProblems } from "./lib/runtime-register.ts";

const root = process.argv[2] ?? dirname(dirname(fileURLToPath(import.meta.url)));
const sources = new Map(
  globSync(["src/**/*.ts", "src/runtime/README.md"], { cwd: root })
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => !path.endsWith(".test.ts") && !path.includes("/fixtures/"))
    .sort()
    .map((path) => [path, readFileSync(join(root, path), "utf8")] as const),
);
const problems = runtimeProblems(sources);
for (const problem of problems) console.log(problem);
process.exitCode = problems.length > 0 ? 1 : 0;
