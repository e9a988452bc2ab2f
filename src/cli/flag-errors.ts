import { FlagError } from "./flag-table.ts";

/**
 * Prints the message of a {@link FlagError} to standard error, and the usage if the error asks for it.
 * @throws any other error, as it is
 */
export function printFlagError(error: unknown, usage: string | (() => string)): void {
  if (!(error instanceof FlagError)) throw error;
  const shown = error.showUsage ? (typeof usage === "string" ? usage : usage()) : "";
  process.stderr.write(`${error.message}\n${shown}`);
}
