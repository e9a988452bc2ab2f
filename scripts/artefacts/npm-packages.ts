import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { StepFailure } from "../lib/step.mjs";
import { runTool } from "./tools.ts";

/**
 * The files of one package of npm, whatever platform it is for.
 * @param cache where they are kept
 * @param integrity the hash of the archive, as in a lock file
 * @returns the folder with its package.json
 * @throws {StepFailure} where the registry has it not, or another archive
 */
export async function fetchNpmPackage(
  cache: string,
  name: string,
  version: string,
  integrity: string,
): Promise<string> {
  const key = `${name.replace("/", "-")}-${version}-${hex(integrity).slice(0, 12)}`;
  const folder = join(cache, key);
  if (existsSync(folder)) return join(folder, "package");
  const work = join(cache, `${key}.${process.pid}`);
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  try {
    await runTool("npm", ["pack", `${name}@${version}`, "--ignore-scripts", "--pack-destination", work], {
      cwd: work,
    });
    const [archive = ""] = globSync("*.tgz", { cwd: work });
    const hash = createHash("sha512")
      .update(readFileSync(join(work, archive)))
      .digest("base64");
    if (`sha512-${hash}` !== integrity)
      throw new StepFailure(`${name}@${version} is not the archive that is pinned: sha512-${hash}`);
    await runTool("tar", ["--extract", "--gzip", "--no-same-owner", "--file", archive], { cwd: work });
    rmSync(join(work, archive));
    renameSync(work, folder);
  } catch (error) {
    // Another process may have been as quick.
    if (!existsSync(folder)) throw error;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return join(folder, "package");
}

function hex(integrity: string): string {
  return Buffer.from(integrity.replace(/^sha512-/, ""), "base64").toString("hex");
}
