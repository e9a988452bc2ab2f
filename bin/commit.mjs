import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Where the build says which commit it built: a package has no history to ask. */
export const COMMIT_FILE = join("dist", "commit");

/** Milliseconds: git looks at each file of the checkout. */
const PATIENCE = 5000;

/**
 * The commit that the program was made from: its first twelve digits, with `-dirty` where files were changed since. A checkout is asked now, as a
 * build may be older than the last commit.
 * @param {string} packageRoot
 * @returns {string | undefined} undefined where nothing says it
 */
export function findCommit(packageRoot) {
  return askGit(packageRoot) ?? readCommitFile(packageRoot);
}

/**
 * @param {string} packageRoot
 * @returns {string | undefined} undefined where the folder is no checkout, or git does not work there
 */
function askGit(packageRoot) {
  // A package may be installed inside the checkout of something else.
  if (!existsSync(join(packageRoot, ".git"))) return undefined;
  // Only here: no package needs it, and it takes 3 to 5 ms to load.
  const { spawnSync } = process.getBuiltinModule("node:child_process");
  const { status, stdout } = spawnSync(
    "git",
    // No tag matches: all of them are left out.
    ["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
    { cwd: packageRoot, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], timeout: PATIENCE },
  );
  return status === 0 ? stdout.trim() : undefined;
}

/** @param {string} packageRoot */
function readCommitFile(packageRoot) {
  try {
    return readFileSync(join(packageRoot, COMMIT_FILE), "utf8").trim() || undefined;
  } catch {
    return undefined;
  }
}
