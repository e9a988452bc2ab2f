/** The benchmark under floods: `--soak`. */
import { capture } from "../../scripts/lib/captured-process.ts";
import { USUAL_SIZE } from "../cluster/cluster-shape.ts";
import { describeMachine } from "../machine.ts";
import { moveToLoadCore } from "../run/cores.ts";
import { measureSoak } from "./measure-soak.ts";
import type { SoakResults, SoakRun } from "./soak-results.ts";

/** Of each flood. */
const SECONDS = 12;
const THREADS = [1, 2] as const;

/**
 * @param minutes for each number of threads
 * @throws Error where the server ends
 */
export async function runSoakBenchmark(
  root: string,
  folder: string,
  minutes: number,
  say: (line: string) => void,
): Promise<SoakResults> {
  const startedAt = new Date().toISOString();
  const [command, ...args] = moveToLoadCore(process.pid);
  await capture(command, args, { cwd: "/", timeout: 10_000 });
  const machine = await describeMachine(root);
  const runs: SoakRun[] = [];
  for (const threads of THREADS) {
    say(`floods with multisocket ${threads}, ${minutes} minutes`);
    runs.push(await measureSoak({ threads, minutes, seconds: SECONDS, size: USUAL_SIZE, folder, say }));
  }
  return { startedAt, machine, minutes, runs };
}
