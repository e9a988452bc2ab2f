import { execFileSync } from "node:child_process";
import { accessSync, constants, readFileSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";

/** The oldest Node that runs Portolan; package.json says the same under `engines`. */
export const OLDEST_NODE = "24.11";

/** @param {string} version such as "24.21.0" */
export function isSupported(version) {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = OLDEST_NODE.split(".").map(Number);
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}

/**
 * The Node that npm installed with the package (the npm package `node`): its path, or undefined where there is
 * none that is new enough. Looks in `node_modules` of the package's own folder, then of each folder above.
 * @param {string} packageRoot
 * @param {string} [runningNode] path of the Node to pass over
 * @returns {string | undefined}
 */
export function findNode(packageRoot, runningNode) {
  const running = runningNode === undefined ? undefined : realPath(runningNode);
  for (let folder = packageRoot; ; folder = dirname(folder)) {
    for (const place of ["node/bin/node", ".bin/node"]) {
      const candidate = realPath(join(folder, "node_modules", place));
      if (candidate === undefined || candidate === running || !isExecutable(candidate)) continue;
      if (isSupported(versionOf(candidate))) return candidate;
    }
    if (dirname(folder) === folder) return undefined;
  }
}

/** @param {string} path */
function realPath(path) {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

/** @param {string} path */
function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Read from the npm package around the executable; asking the executable itself takes tens of milliseconds.
 * @param {string} node
 * @returns {string} "0" where it cannot be learnt
 */
function versionOf(node) {
  try {
    const { name, version } = JSON.parse(readFileSync(join(dirname(node), "..", "package.json"), "utf8"));
    if (name === "node") return version;
  } catch {
    // Not inside an npm package.
  }
  try {
    return execFileSync(node, ["--version"], { encoding: "utf8" }).trim().replace(/^v/, "");
  } catch {
    return "0";
  }
}
