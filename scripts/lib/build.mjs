import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { BUILD_STAMP, isBuildCurrent } from "../../bin/build-state.mjs";
import { runLogged, step } from "./step.mjs";

/**
 * Builds `dist/` unless it is newer than the sources.
 * @param {string} root the project's folder
 * @param {string} node the Node to run the compiler with
 * @throws {StepFailure}
 */
export async function provideBuild(root, node) {
  if (!isBuildCurrent(root)) await step("Building dist/ from src/", () => build(root, node));
}

/**
 * Builds `dist/`: types from the compiler, a few large modules from the bundler, and beside them the files that the program reads.
 * A build that fails leaves the old `dist/` as it was.
 * @param {string} root
 * @param {string} node
 * @throws {StepFailure}
 */
export async function build(root, node) {
  const begun = new Date();
  const cache = join(root, ".cache");
  mkdirSync(cache, { recursive: true });
  const work = mkdtempSync(join(cache, "build-"));
  const made = join(work, "dist");
  try {
    const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
    const logged = { cwd: root, log: join(cache, "build.log") };
    const compile = [compiler, "-p", "tsconfig.build.json"];
    await runLogged(node, [...compile, "--emitDeclarationOnly", "--outDir", made], logged);
    // Comments are for those who read the types: V8 holds the text of each module that it runs.
    const modules = join(work, "modules");
    await runLogged(
      node,
      [...compile, "--declaration", "false", "--removeComments", "--outDir", modules],
      logged,
    );
    await runLogged(node, [join(import.meta.dirname, "bundle.mjs"), modules, made], logged);
    copyOtherFiles(join(root, "src"), made);
    // What "portolan help" shows.
    const pages = join(root, "docs");
    if (existsSync(pages)) cpSync(pages, join(made, "docs"), { recursive: true });
    if (existsSync(join(root, "src", "console", "page")))
      await runLogged(node, [join(import.meta.dirname, "build-page.mjs"), made], logged);
    const stamp = join(work, BUILD_STAMP);
    writeFileSync(stamp, "");
    utimesSync(stamp, begun, begun);
    const dist = join(root, "dist");
    if (existsSync(dist)) renameSync(dist, join(work, "old"));
    renameSync(made, dist);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/**
 * What package.json promises to users of the package and `dist/` does not hold.
 * @param {string} root
 * @param {unknown} value `exports` and `bin` of package.json, or a part of them
 * @returns {string[]}
 */
export function missingFiles(root, value) {
  if (typeof value === "string") return existsSync(join(root, value)) ? [] : [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap((part) => missingFiles(root, part));
}

/**
 * Copies what is not TypeScript, such as READMEs and plugin.cfg. Folders named `fixtures` are for tests.
 * @param {string} from
 * @param {string} to
 */
function copyOtherFiles(from, to) {
  cpSync(from, to, {
    recursive: true,
    filter: (path) => !/\.[cm]?tsx?$/.test(path) && basename(path) !== "fixtures",
  });
}
