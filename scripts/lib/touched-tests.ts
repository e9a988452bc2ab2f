import { posix } from "node:path";
import { capture } from "./captured-process.ts";
import { importGraph } from "./import-graph.ts";
import { StepFailure } from "./step.mjs";

/**
 * The files that differ from a commit, those that git does not know yet included. Paths are relative to `root`.
 * @param since a commit, a branch or a tag
 * @throws StepFailure where git does not know it
 */
export async function changedFiles(root: string, since: string): Promise<string[]> {
  const git = async (...args: readonly string[]) => {
    const { code, output } = await capture("git", args, { cwd: root, timeout: 60_000 });
    if (code !== 0) throw new StepFailure(`git ${args.join(" ")}: ${output.trim()}`);
    return output.split("\0").filter((path) => path !== "");
  };
  const differing = await git("diff", "--name-only", "--no-renames", "-z", since, "--");
  const unknown = await git("ls-files", "--others", "--exclude-standard", "-z");
  return [...new Set([...differing, ...unknown])].sort();
}

/**
 * The test files that a change touches:
 * - tests that changed, and tests that import a changed file, directly or through others;
 * - for a changed file of a plugin, the tests of `test/` that name its directive: they run the built program and import none of it;
 * - for any other changed file of the program, all of `test/`;
 * - for any other changed file, such as a page or a script, also the tests that name it.
 * @param changed paths relative to the root of the project, also of files that are gone
 * @param sources text of all TypeScript and JavaScript of the project by path
 */
export function touchedTests(
  changed: readonly string[],
  sources: ReadonlyMap<string, string>,
): ReadonlySet<string> {
  const tests = [...sources.keys()].filter((path) => path.endsWith(".test.ts"));
  const touched = new Set(importersOf(changed, sources));
  for (const path of changed) {
    if (isOfTheProgram(path)) {
      const plugin = /^src\/plugins\/([^/]+)\//.exec(path)?.[1];
      const names = plugin === undefined ? /(?:)/ : wordOf(plugin);
      addWhere(tests, touched, (test) => test.startsWith("test/") && names.test(sources.get(test) ?? ""));
    } else {
      const name = wordOf(posix.basename(path));
      addWhere(tests, touched, (test) => name.test(sources.get(test) ?? ""));
    }
  }
  return new Set(tests.filter((test) => touched.has(test)));
}

/** The changed files themselves are among them. */
function importersOf(changed: readonly string[], sources: ReadonlyMap<string, string>): Set<string> {
  const importers = new Map<string, string[]>();
  for (const [path, targets] of importGraph(sources))
    for (const target of targets) importers.set(target, [...(importers.get(target) ?? []), path]);
  const reached = new Set(changed);
  for (const path of reached) for (const importer of importers.get(path) ?? []) reached.add(importer);
  return reached;
}

/** Whether the built program has it: the sources without their tests, and what starts them. */
function isOfTheProgram(path: string): boolean {
  return /^(src|bin)\/.*\.(ts|tsx|mjs|css|html)$/.test(path) && !path.endsWith(".test.ts");
}

function addWhere(
  tests: readonly string[],
  touched: Set<string>,
  isTouched: (test: string) => boolean,
): void {
  for (const test of tests) if (isTouched(test)) touched.add(test);
}

/** A name that no letter, digit or hyphen continues. */
function wordOf(name: string): RegExp {
  return new RegExp(`(?<![\\w-])${RegExp.escape(name)}(?![\\w-])`);
}
