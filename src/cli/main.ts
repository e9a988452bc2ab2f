/** Entry point for the launcher. */
import { loadInTurns } from "../server/run/load-in-turns.ts";

/** @returns the exit code, like `runProgram` of program.ts */
export async function main(argv: readonly string[]): Promise<number> {
  await loadInTurns();
  const { runProgram } = await import("./program.ts");
  return await runProgram(argv);
}
