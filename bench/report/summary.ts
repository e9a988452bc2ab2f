/** Results seen by workload and server. */
import { median, type Spread, spreadOf } from "../numbers/statistics.ts";
import type { PairSample, Results, Sample } from "../results.ts";

/** One figure of a sample; undefined where it was not measured. */
export type Figure = (sample: Sample) => number | undefined;

export const queriesPerSecond: Figure = (sample) => sample.queriesPerSecond;
export const cpuMicroseconds: Figure = (sample) => sample.cpuMicroseconds;
export const p99Microseconds: Figure = (sample) => sample.openLoop.latency?.p99;

/** Which server under which workload. */
export interface Place {
  readonly workload: string;
  readonly server: string;
}

/** A figure over the rounds. */
export function figureAt(results: Results, place: Place, figure: Figure): Spread | undefined {
  return spreadOf(samplesAt(results, place).flatMap((sample) => figure(sample) ?? []));
}

/**
 * How a figure at one place compares with that at another, round by round: what changes from round to round on this machine
 * has no part in it.
 */
export function ratioOf(results: Results, figure: Figure, one: Place, other: Place): Spread | undefined {
  const others = new Map(samplesAt(results, other).map((sample) => [sample.round, figure(sample)]));
  const ratios = samplesAt(results, one).flatMap((sample) => {
    const [value, otherValue] = [figure(sample), others.get(sample.round)];
    return value === undefined || otherValue === undefined ? [] : [value / otherValue];
  });
  return spreadOf(ratios.filter(Number.isFinite));
}

/**
 * CPU time an answer between servers that ran side by side: the median of the turns of each round.
 * @param workload of Portolan
 * @param other what it was compared with
 */
export function pairRatio({ pairs = [] }: Results, workload: string, other: Place): Spread | undefined {
  const found = pairs.filter((pair) => pair.workload === workload && isBeside(pair, other));
  return spreadOf(found.filter(({ ratios }) => ratios.length > 0).map(({ ratios }) => median(ratios)));
}

export function isBeside({ beside, server = "portolan" }: PairSample, other: Place): boolean {
  return beside === other.workload && server === other.server;
}

export function samplesAt({ samples }: Results, { workload, server }: Place): readonly Sample[] {
  return samples.filter((sample) => sample.workload === workload && sample.server === server);
}

/** The servers that were measured under a workload, in the order of the tables. */
export function serversOf(results: Results, workload: string): readonly string[] {
  return results.servers
    .map(({ name }) => name)
    .filter((server) => samplesAt(results, { workload, server }).length > 0);
}
