/** The benchmark under floods: `--soak`. */
import { capture } from "../../scripts/lib/captured-process.ts";
import { USUAL_SIZE } from "../cluster/cluster-shape.ts";
import { describeMachine } from "../machine.ts";
import { moveToLoadCore } from "../run/cores.ts";
import { measureSoak } from "./measure-soak.ts";
import type { SoakResults, SoakRun, UnreadSample } from "./soak-results.ts";
import { measureUnread } from "./unread.ts";

/** Of each flood. */
const SECONDS = 12;
const THREADS = [1, 2] as const;
/** Memory and clients that read nothing, and for how long. */
const UNREAD = [
  { mebibytes: 170, connections: 1_500, seconds: 20 },
  { mebibytes: 128, connections: 300, seconds: 20 },
] as const;

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
  return { startedAt, machine, minutes, runs, unread: await runUnread(folder, say) };
}

async function runUnread(
  folder: string,
  say: (line: string) => void,
): Promise<readonly UnreadSample[] | undefined> {
  if (process.getuid?.() !== 0) {
    say("clients that read nothing: not measured, control groups need root");
    return undefined;
  }
  const samples: UnreadSample[] = [];
  for (const each of UNREAD) {
    say(`${each.connections} clients that read nothing, in ${each.mebibytes} MiB`);
    const sample = await measureUnread({ ...each, folder });
    samples.push(sample);
    say(
      `    ${sample.peakMegabytes.toFixed(0)} MB at most, ${sample.kills} killed; of ${sample.asked} questions of a client that reads ${sample.lost} lost`,
    );
  }
  return samples;
}
