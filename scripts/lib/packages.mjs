import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { findNode } from "../../bin/find-node.mjs";
import { runLogged, StepFailure, step } from "./step.mjs";

/**
 * What a lock file says of one package.
 * @typedef {{ version?: string, integrity?: string, optional?: boolean, devOptional?: boolean }} LockedPackage
 */

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
 */
export function arePackagesCurrent(root) {
  const wanted = lockedPackages(join(root, "package-lock.json"));
  const installed = lockedPackages(join(root, "node_modules", ".package-lock.json"));
  if (wanted === undefined || installed === undefined) return false;
  if ([...installed.keys()].some((path) => !wanted.has(path))) return false;
  return [...wanted].every(([path, want]) => {
    const have = installed.get(path);
    // Packages for other platforms are in the lock file and stay out of node_modules.
    if (have === undefined) return want.optional === true || want.devOptional === true;
    return have.version === want.version && have.integrity === want.integrity;
  });
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

/** @param {string} root */
async function install(root) {
  // The npm that runs this script, where one does, else the one in PATH.
  const script = process.env.npm_execpath;
  const [command, ...first] =
    script !== undefined && basename(script) === "npm-cli.js" ? [process.execPath, script] : ["npm"];
  const args = [...first, "ci", "--include=dev", "--no-audit", "--no-fund", "--foreground-scripts"];
  await runLogged(command ?? "npm", args, { cwd: root, log: join(root, ".cache", "npm-ci.log") });
}
