/** The benchmark of the live cluster: every scenario once. */
import { capture } from "../../scripts/lib/captured-process.ts";
import { describeMachine, ticksPerSecond } from "../machine.ts";
import { moveToLoadCore } from "../run/cores.ts";
import type { ClusterResults, ClusterSample } from "./cluster-results.ts";
import { FULL_SIZE } from "./cluster-shape.ts";
import { measureScenario, type ScenarioDurations } from "./measure-scenario.ts";
import { SCENARIOS } from "./scenarios.ts";

const DURATIONS: ScenarioDurations = { rest: 12, churn: 20, latency: 15 };

/**
 * @param root the project's folder
 * @param folder for everything that is needed meanwhile
 * @throws Error where Portolan or the API ends, or Portolan does not become ready
 */
export async function runClusterBenchmark(
  root: string,
  folder: string,
  say: (line: string) => void,
): Promise<ClusterResults> {
  const startedAt = new Date().toISOString();
  const [command, ...args] = moveToLoadCore(process.pid);
  await capture(command, args, { cwd: "/", timeout: 10_000 });
  const machine = await describeMachine(root);
  const samples: ClusterSample[] = [];
  for (const scenario of SCENARIOS) {
    say(`live cluster, ${scenario.name}: ${scenario.about}`);
    const sample = await measureScenario({
      scenario,
      size: FULL_SIZE,
      folder,
      ticksPerSecond: await ticksPerSecond(),
      durations: DURATIONS,
    });
    samples.push(sample);
    say(`    ${describeSample(sample)}`);
    for (const doubt of sample.doubts) say(`    ! ${doubt}`);
  }
  return { startedAt, machine, size: FULL_SIZE, samples };
}

function describeSample({ ready, restMegabytes, relist, latency }: ClusterSample): string {
  const figures = [
    `ready after ${Math.round(ready)} ms`,
    `${Math.round(restMegabytes)} MB at rest`,
    `${Math.round(relist.peakMegabytes)} MB at most in a relist`,
  ];
  const p99 = latency?.latency?.p99;
  if (p99 !== undefined) figures.push(`p99 of a change ${(p99 / 1000).toFixed(1)} ms`);
  return figures.join(", ");
}
