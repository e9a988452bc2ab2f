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
import { COMMIT_FILE, findCommit } from "../../bin/commit.mjs";
import { runLogged, step } from "./step.mjs";

/**
 * Builds `dist/` unless it is newer than the sources.
 * @param {string} root the project's folder
 * @param {string} node the Node to run the tools with
 * @param {{ types: boolean }} options whether the declarations of types are needed: they take most of the time
 * @throws {StepFailure}
 */
export async function provideBuild(root, node, { types }) {
  const isCurrent =
    isBuildCurrent(root) &&
    existsSync(join(root, COMMIT_FILE)) &&
    (!types || existsSync(join(root, "dist", "index.d.ts")));
  if (!isCurrent) await step("Building dist/ from src/", () => build(root, node, { types }));
}

/**
 * Builds `dist/`: a few large modules from the bundler, and beside them the files that the program reads.
 * A build that fails leaves the old `dist/` as it was.
 * @param {string} root
 * @param {string} node
 * @param {{ types: boolean }} options whether to add the compiler's declarations of types
 * @throws {StepFailure}
 */
export async function build(root, node, { types }) {
  const begun = new Date();
  const cache = join(root, ".cache");
  mkdirSync(cache, { recursive: true });
  const work = mkdtempSync(join(cache, "build-"));
  const made = join(work, "dist");
  try {
    const src = join(root, "src");
    const run = (/** @type {string[]} */ ...args) =>
      runLogged(node, args, { cwd: root, log: join(cache, "build.log") });
    if (types) {
      const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
      await run(compiler, "-p", "tsconfig.build.json", "--emitDeclarationOnly", "--outDir", made);
    }
    await run(join(import.meta.dirname, "bundle.mjs"), src, made);
    copyOtherFiles(src, made);
    // What "portolan help" shows: text.
    const pages = join(root, "docs");
    const isShown = (/** @type {string} */ path) => basename(path) !== "pictures";
    if (existsSync(pages)) cpSync(pages, join(made, "docs"), { recursive: true, filter: isShown });
    if (existsSync(join(src, "console", "page")))
      await run(join(import.meta.dirname, "build-page.mjs"), made);
    // Where no history is at hand, as in a build in a container, the caller names the commit.
    const commit = process.env.PORTOLAN_COMMIT || findCommit(root) || "unknown";
    writeFileSync(join(work, COMMIT_FILE), `${commit}\n`);
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
 * Copies what is not TypeScript, such as plugin.cfg and the READMEs of plugins, which `portolan help` shows. Folders named `fixtures` are for
 * tests, and other READMEs for readers of the code.
 * @param {string} from
 * @param {string} to
 */
function copyOtherFiles(from, to) {
  cpSync(from, to, {
    recursive: true,
    filter: (path) =>
      !/\.[cm]?tsx?$/.test(path) &&
      basename(path) !== "fixtures" &&
      (!path.endsWith(".md") || /\/plugins\/[^/]+\/README\.md$/.test(path)),
  });
}
