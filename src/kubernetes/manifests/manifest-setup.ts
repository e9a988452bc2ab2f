/** Manifests as plugins use them: faults of paths in the words of a start, faults of files in the log. */
import type { Logger } from "../../lib/logging/log.ts";
import { SetupError } from "../../plugin/contract/define-plugin.ts";
import { formatManifestProblem, type ManifestProblem } from "./manifest-problem.ts";
import { checkManifestPaths, ManifestPathError } from "./manifest-source.ts";

export function logManifestProblem(problem: ManifestProblem, log: Logger): void {
  const line = `manifests: ${formatManifestProblem(problem)}`;
  if (problem.severity === "error") log.error(line);
  else log.warning(line);
}

export function logManifestMended(path: string, log: Logger): void {
  log.info(`manifests: ${path}: no longer at fault`);
}

/** @throws SetupError where one of the paths, which are absolute, cannot be used */
export function requireManifests(paths: readonly string[]): Promise<void> {
  return orSetupError(() => checkManifestPaths(paths));
}

/** @throws SetupError in place of a ManifestPathError */
export async function orSetupError(task: () => Promise<void>): Promise<void> {
  try {
    await task();
  } catch (error) {
    if (!(error instanceof ManifestPathError)) throw error;
    throw new SetupError(error.message, {
      notes: ["'manifests' takes YAML or JSON files, and directories of them"],
    });
  }
}
