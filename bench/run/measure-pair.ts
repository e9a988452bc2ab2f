/** Two servers under load in turns: for differences that are less than the machine's own ups and downs. */
import type { QueryFiles } from "../material.ts";
import type { PairSample } from "../results.ts";
import { PORTOLAN } from "../servers/portolan.ts";
import type { Deployment, ServerKind } from "../servers/server.ts";
import type { Workload } from "../workloads.ts";
import { checkAnswers } from "./check-answers.ts";
import { runCapacityLoad, runFill } from "./load.ts";
import { RunningServer } from "./running-server.ts";

/** One of the two. */
export interface Side {
  readonly kind: ServerKind;
  readonly workload: Workload;
  readonly queries: QueryFiles;
  readonly deployment: Deployment;
}

export interface PairOptions {
  readonly round: number;
  readonly warmUpSeconds: number;
  readonly ticksPerSecond: number;
}

const PAIRS = 20;
/** Seconds of each turn: ticks are a hundredth of a second. */
const TURN = 1;

/**
 * @param one the first side is Portolan
 * @throws WrongAnswer; Error where a server cannot be measured
 */
export async function measurePair(options: PairOptions, one: Side, other: Side): Promise<PairSample> {
  await using first = RunningServer.start(one.kind, one.deployment);
  await using second = RunningServer.start(other.kind, other.deployment);
  const sides = [
    { ...one, server: first },
    { ...other, server: second },
  ] as const;
  for (const { server, workload, queries } of sides) {
    await checkAnswers(server, workload);
    await runFill(server.port, queries.fill);
    await runCapacityLoad(workload.load, server.port, queries["warm-up"], options.warmUpSeconds);
  }
  const ratios: number[] = [];
  for (let pair = 0; pair < PAIRS; pair++) {
    // The order alternates, so that a machine that gets slower or faster favours neither side.
    const turns = pair % 2 === 0 ? [sides[0], sides[1]] : [sides[1], sides[0]];
    const costs = new Map<RunningServer, number>();
    for (const side of turns) costs.set(side.server, await costOfTurn(side, options.ticksPerSecond));
    ratios.push((costs.get(first) ?? Number.NaN) / (costs.get(second) ?? Number.NaN));
  }
  first.assertRunning();
  second.assertRunning();
  return {
    round: options.round,
    workload: one.workload.name,
    beside: other.workload.name,
    ...(other.kind !== PORTOLAN && { server: other.kind.name }),
    ratios: ratios.filter(Number.isFinite),
  };
}

/** @returns seconds of CPU time an answer */
async function costOfTurn(
  { server, workload, queries }: Side & { readonly server: RunningServer },
  ticksPerSecond: number,
): Promise<number> {
  const before = server.cpuSeconds(ticksPerSecond);
  const { answered } = await runCapacityLoad(workload.load, server.port, queries.capacity, TURN);
  return (server.cpuSeconds(ticksPerSecond) - before) / answered;
}
