import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { findNode } from "../../bin/find-node.mjs";
import { BUNDLED } from "./bundled-packages.mjs";
import { runLogged, StepFailure, step } from "./step.mjs";

/**
 * What a lock file says of one package.
 * @typedef {{ version?: string, integrity?: string, dev?: boolean, optional?: boolean, devOptional?: boolean, peer?: boolean, dependencies?: Record<string, string>, optionalDependencies?: Record<string, string> }} LockedPackage
 */

/** Development packages that make `dist/`: with these and the dependencies, `npm start` runs. */
const BUILD_PACKAGES = ["@preact/signals", "esbuild", "node", "preact", "rolldown", ...BUNDLED.keys()];

/**
 * Installs the npm packages, the pinned Node among them, unless what the lock file asks for is there.
 * @param {string} root the project's folder
 * @returns {Promise<string>} the path of the pinned Node
 * @throws {StepFailure}
 */
export async function providePackages(root) {
  if (!arePackagesCurrent(root)) {
    await step("Installing the npm packages, Node 24 among them", () => install(root));
  }
  return pinnedNode(root);
}

/**
 * Installs only the packages that building and running the server takes: a sixth of the time that all of them take. Where packages of another
 * version are there, installs all.
 * @param {string} root
 * @returns {Promise<string>} the path of the pinned Node
 * @throws {StepFailure}
 */
export async function provideStartPackages(root) {
  if (existsSync(join(root, "node_modules"))) {
    if (!arePackagesCurrent(root, packagesToStart(root))) return providePackages(root);
  } else {
    await step("Installing Node 24 and the packages of the server", () => installToStart(root));
  }
  return pinnedNode(root);
}

/**
 * Installs the generators of the documentation site, which have a lock file of their own, unless they are there.
 * @param {string} root
 * @throws {StepFailure}
 */
export async function provideSitePackages(root) {
  const site = join(root, "site");
  if (arePackagesCurrent(site)) return;
  await step("Installing the generators of the site", () =>
    install(site, join(root, ".cache", "npm-ci-site.log")),
  );
}

/** @param {string} root */
function pinnedNode(root) {
  const node = findNode(root);
  if (node !== undefined) return node;
  throw new StepFailure(
    "npm installed no Node into node_modules/node, as it does not run install scripts here.",
    "Allow them (npm config set ignore-scripts false), remove node_modules and try again.",
  );
}

/**
 * Whether `node_modules` holds what `package-lock.json` asks for, by the record that npm leaves there.
 * @param {string} root
 * @param {ReadonlyMap<string, LockedPackage>} [needed] the packages to look for; all of the lock file unless given
 */
export function arePackagesCurrent(root, needed) {
  const wanted = lockedPackages(join(root, "package-lock.json"));
  const installed = lockedPackages(join(root, "node_modules", ".package-lock.json"));
  if (wanted === undefined || installed === undefined) return false;
  if ([...installed.keys()].some((path) => !wanted.has(path))) return false;
  return [...(needed ?? wanted)].every(([path, want]) => {
    const have = installed.get(path);
    // Packages for other platforms are in the lock file and stay out of node_modules.
    if (have === undefined) return want.optional === true || want.devOptional === true;
    return have.version === want.version && have.integrity === want.integrity;
  });
}

/**
 * The dependencies and the packages that make `dist/`, each with all that it depends on.
 * @param {string} root
 * @returns {Map<string, LockedPackage>} by path, such as "node_modules/esbuild"
 */
export function packagesToStart(root) {
  const locked = lockedPackages(join(root, "package-lock.json")) ?? new Map();
  const { dependencies, optionalDependencies } = describeProject(root);
  const names = [...Object.keys({ ...dependencies, ...optionalDependencies }), ...BUILD_PACKAGES];
  const found = new Map();
  const queue = names.map((name) => `node_modules/${name}`);
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    const described = locked.get(path);
    if (described === undefined || found.has(path)) continue;
    found.set(path, described);
    for (const name of Object.keys({ ...described.dependencies, ...described.optionalDependencies }))
      queue.push(placeOf(name, path, locked));
  }
  return found;
}

/**
 * Where a package finds another one: in its own `node_modules`, or in that of a package around it.
 * @param {string} name
 * @param {string} from the path of the package that imports it
 * @param {ReadonlyMap<string, LockedPackage>} locked
 */
function placeOf(name, from, locked) {
  for (
    let folder = from;
    folder !== "";
    folder = folder.slice(0, Math.max(0, folder.lastIndexOf("/node_modules/")))
  ) {
    const path = `${folder}/node_modules/${name}`;
    if (locked.has(path)) return path;
  }
  return `node_modules/${name}`;
}

/**
 * @param {string} file
 * @returns {Map<string, LockedPackage> | undefined} by path; undefined where there is no such file
 */
function lockedPackages(file) {
  if (!existsSync(file)) return undefined;
  /** @type {{ packages?: Record<string, LockedPackage> }} */
  const { packages = {} } = JSON.parse(readFileSync(file, "utf8"));
  return new Map(Object.entries(packages).filter(([path]) => path !== ""));
}

/**
 * @param {string} root
 * @returns {{ dependencies?: Record<string, string>, optionalDependencies?: Record<string, string>, devDependencies?: Record<string, string>, allowScripts?: Record<string, boolean> }}
 */
function describeProject(root) {
  return JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
}

/**
 * npm installs all development packages or none. So a project that has just the packages to start is made, from the same lock file, and its
 * `node_modules` becomes this one's.
 * @param {string} root
 */
async function installToStart(root) {
  const folder = join(root, ".cache", "start-packages");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const { dependencies, optionalDependencies, devDependencies = {}, allowScripts } = describeProject(root);
  const build = BUILD_PACKAGES.map((name) => [name, devDependencies[name] ?? ""]);
  const project = {
    name: "portolan-start",
    private: true,
    dependencies: { ...dependencies, ...Object.fromEntries(build) },
    optionalDependencies,
    allowScripts,
  };
  const packages = [...packagesToStart(root)].map(([path, { dev, devOptional, peer, ...described }]) => [
    path,
    devOptional === true ? { ...described, optional: true } : described,
  ]);
  const lock = {
    name: project.name,
    lockfileVersion: 3,
    requires: true,
    packages: { "": project, ...Object.fromEntries(packages) },
  };
  writeFileSync(join(folder, "package.json"), JSON.stringify(project));
  writeFileSync(join(folder, "package-lock.json"), JSON.stringify(lock));
  copyFileSync(join(root, ".npmrc"), join(folder, ".npmrc"));
  await install(folder, join(root, ".cache", "npm-ci.log"));
  renameSync(join(folder, "node_modules"), join(root, "node_modules"));
}

/**
 * @param {string} root
 * @param {string} [log]
 */
async function install(root, log = join(root, ".cache", "npm-ci.log")) {
  // The npm that runs this script, where one does, else the one in PATH.
  const script = process.env.npm_execpath;
  const [command, ...first] =
    script !== undefined && basename(script) === "npm-cli.js" ? [process.execPath, script] : ["npm"];
  const args = [...first, "ci", "--include=dev", "--no-audit", "--no-fund", "--foreground-scripts"];
  await runLogged(command ?? "npm", args, { cwd: root, log });
}
