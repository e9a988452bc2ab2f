/**
 * Where the launcher begins. The program is loaded piece by piece, from what needs nothing up to what needs everything, with a turn of the event loop
 * for each: V8 takes 5 to 10 ms to read and run a piece.
 */
import { setImmediate as nextTurn } from "node:timers/promises";

/** @returns the exit code, as {@link runProgram} */
export async function main(argv: readonly string[]): Promise<number> {
  await import("../dns/index.ts");
  await nextTurn();
  await import("../lib/log.ts");
  await nextTurn();
  await import("../server/server.ts");
  await nextTurn();
  const { runProgram } = await import("./program.ts");
  return await runProgram(argv);
}
