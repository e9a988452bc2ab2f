import { stat } from "node:fs/promises";
import { type Logger, SetupError } from "../../plugin/index.ts";

/**
 * Logs a warning for a missing directory: it may appear later, when a volume is mounted. @throws SetupError if the
 * path cannot be accessed for another reason
 */
export async function checkDirectory(path: string, log: Logger): Promise<void> {
  try {
    await stat(path);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (!("code" in error) || error.code !== "ENOENT") {
      throw new SetupError(`unable to access root path '${path}': ${error.message}`, { cause: error });
    }
    log.warning(`Root path does not exist: ${path}`);
  }
}
