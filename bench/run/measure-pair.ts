/** Two servers of one kind under the same load in turns: what a directive costs, where that is less than the machine's own ups and downs. */
import type { PairSample } from "../results.ts";
import { PORTOLAN } from "../servers/portolan.ts";
import type { Deployment } from "../servers/server.ts";
import type { Workload } from "../workloads.ts";
import { checkAnswers } from "./check-answers.ts";
import { runCapacityLoad, runFill } from "./load.ts";
import type { MeasureOptions } from "./measure.ts";
import { RunningServer } from "./running-server.ts";

export interface PairOptions
  extends Pick<MeasureOptions, "round" | "workload" | "queries" | "warmUpSeconds" | "ticksPerSecond"> {
  readonly beside: Workload;
  /** Of the server with the directives of the workload, and of the one without. */
  readonly deployments: readonly [Deployment, Deployment];
}

const PAIRS = 20;
/** Seconds of each turn: ticks are a hundredth of a second. */
const TURN = 1;

/** @throws WrongAnswer; Error where a server cannot be measured */
export async function measurePair(options: PairOptions): Promise<PairSample> {
  const { round, workload, beside, deployments } = options;
  await using one = RunningServer.start(PORTOLAN, deployments[0]);
  await using other = RunningServer.start(PORTOLAN, deployments[1]);
  for (const server of [one, other]) {
    await checkAnswers(server, workload);
    await runFill(server.port, options.queries.fill);
    await runCapacityLoad(workload.load, server.port, options.queries["warm-up"], options.warmUpSeconds);
  }
  const ratios: number[] = [];
  for (let pair = 0; pair < PAIRS; pair++) {
    // Who is first changes: what gets slower or faster meanwhile is nobody's.
    const turns = pair % 2 === 0 ? [one, other] : [other, one];
    const costs = new Map<RunningServer, number>();
    for (const server of turns) costs.set(server, await costOfTurn(server, options));
    ratios.push((costs.get(one) ?? Number.NaN) / (costs.get(other) ?? Number.NaN));
  }
  one.assertRunning();
  other.assertRunning();
  return { round, workload: workload.name, beside: beside.name, ratios: ratios.filter(Number.isFinite) };
}

/** @returns seconds of CPU time an answer */
async function costOfTurn(
  server: RunningServer,
  { workload, queries, ticksPerSecond }: PairOptions,
): Promise<number> {
  const before = server.cpuSeconds(ticksPerSecond);
  const { answered } = await runCapacityLoad(workload.load, server.port, queries.capacity, TURN);
  return (server.cpuSeconds(ticksPerSecond) - before) / answered;
}
