/** Packages that few users need, and that are therefore not installed by default. */
import { SetupError } from "../../plugin/contract/define-plugin.ts";

/** @throws SetupError that says what to install */
export async function importOptional<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (!isMissing(error, name)) throw error;
    throw new SetupError(
      `package ${name} is not installed: run "npm install ${name}" where Portolan is installed`,
    );
  }
}

function isMissing(error: unknown, name: string): boolean {
  return (
    error instanceof Error &&
    "code" in error &&
    error.code === "ERR_MODULE_NOT_FOUND" &&
    error.message.includes(`'${name}'`)
  );
}
