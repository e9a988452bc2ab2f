import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** Written by the build when it is done, with the time at which the build began as its modification time. */
export const BUILD_STAMP = join("dist", ".built");

/**
 * Whether `dist/` was built from the sources as they are now. True where there are no sources, as in the
 * published package.
 * @param {string} packageRoot
 */
export function isBuildCurrent(packageRoot) {
  const sources = statSync(join(packageRoot, "src"), { throwIfNoEntry: false });
  if (sources === undefined) return true;
  const stamp = statSync(join(packageRoot, BUILD_STAMP), { throwIfNoEntry: false });
  return stamp !== undefined && !hasNewer(join(packageRoot, "src"), stamp.mtimeMs);
}

/**
 * Folders count too: theirs is the only time that changes when a file is removed or renamed.
 * @param {string} folder
 * @param {number} time milliseconds since the epoch
 * @returns {boolean}
 */
function hasNewer(folder, time) {
  if (statSync(folder).mtimeMs >= time) return true;
  return readdirSync(folder, { withFileTypes: true }).some((entry) => {
    // Not `join`: this is the start of the program in a checkout, and so many calls set V8's slowest compiler to work on it.
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return hasNewer(path, time);
    return !entry.name.endsWith(".test.ts") && statSync(path).mtimeMs >= time;
  });
}
