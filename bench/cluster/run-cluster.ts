/** The benchmark of the live cluster: every scenario once. */
import { capture } from "../../scripts/lib/captured-process.ts";
import { describeMachine, ticksPerSecond } from "../machine.ts";
import { median } from "../numbers/statistics.ts";
import { moveToLoadCore } from "../run/cores.ts";
import type { ChangeSample, ClusterResults, ClusterSample, QueriesAmidChanges } from "./cluster-results.ts";
import { FULL_SIZE } from "./cluster-shape.ts";
import { type ChangeDurations, measureChanges, measureQueriesAmidChanges } from "./measure-changes.ts";
import { measureScenario, type ScenarioDurations } from "./measure-scenario.ts";
import { OtherProcesses } from "./other-processes.ts";
import { CHANGE_SCENARIOS, SCENARIOS } from "./scenarios.ts";

const DURATIONS: ScenarioDurations = { rest: 12, churn: 20, latency: 15 };
const CHANGE_DURATIONS: ChangeDurations = { rest: 12, idle: 10, quick: 10, steady: 20, turn: 6, turns: 4 };

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
  const options = { folder, ticksPerSecond: await ticksPerSecond(), durations: CHANGE_DURATIONS };
  const others = new OtherProcesses(options.ticksPerSecond);
  const changes: ChangeSample[] = [];
  for (const scenario of [CHANGE_SCENARIOS.usual, CHANGE_SCENARIOS.large]) {
    say(`changes in a cluster of ${scenario.name}`);
    const sample = await measureChanges(scenario, options);
    changes.push(sample);
    others.look(`changes, ${scenario.name}`);
    for (const line of describeChanges(sample)) say(`    ${line}`);
  }
  say(`cluster names without cache, ${CHANGE_SCENARIOS.usual.name}, in peace and amid changes`);
  const queriesAmidChanges = await measureQueriesAmidChanges(CHANGE_SCENARIOS.usual, options);
  say(`    ${describeQueries(queriesAmidChanges)}`);
  others.look("queries amid changes");
  const { doubts } = others;
  for (const doubt of doubts) say(`    ! ${doubt}`);
  return { startedAt, machine, size: FULL_SIZE, samples, changes, queriesAmidChanges, doubts };
}

function describeChanges({ loads, idleShare }: ChangeSample): string[] {
  return [
    `idle: ${(idleShare * 100).toFixed(2)} % of a core`,
    ...loads.map(
      ({ rate, together, changes, microseconds, allMicroseconds }) =>
        `${changes} at ${rate}/s, ${together} together: ${microseconds.toFixed(0)} µs each, ${allMicroseconds.toFixed(0)} with what an idle process takes`,
    ),
  ];
}

function describeQueries(queries: QueriesAmidChanges): string {
  const [peace, amid] = [queries.peace, queries.amid].map((turns) =>
    median(turns.map(({ cpuMicroseconds }) => cpuMicroseconds)).toFixed(2),
  );
  return `${peace} µs a query in peace, ${amid} amid changes; a change alone ${queries.changeMicroseconds.toFixed(0)} µs`;
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
