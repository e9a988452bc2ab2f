/** The reasons to doubt a measurement. It is kept, and shown with its doubts. */
import type { LoadCounts } from "../load/load-result.ts";
import type { QueryFile } from "../material.ts";
import type { OpenLoopSample } from "../results.ts";
import type { Workload } from "../workloads.ts";

export interface WatchedLoad<T extends LoadCounts> {
  readonly result: T;
  /** CPU time of the server an answer, microseconds. */
  readonly cpuMicroseconds: number;
  /** CPU time of the server by time passed: 1 is a whole core. */
  readonly cpuShare: number;
  /** The same of everything that is neither server nor upstream nor load generator. */
  readonly othersShare: number;
}

/** Of one core. */
const MOST_OTHERS = 0.05;
/** Microseconds: a generator that is this late measures itself. */
const MOST_SEND_DELAY = 1_000;

export function doubtsAboutLoad(
  workload: Pick<Workload, "rcodes" | "needsNewNames">,
  queries: Pick<QueryFile, "lines">,
  { result, othersShare }: Pick<WatchedLoad<LoadCounts>, "result" | "othersShare">,
): string[] {
  const doubts: string[] = [];
  if (result.lost > 0) doubts.push(`${result.lost} of ${result.sent} lost`);
  for (const [rcode, count] of Object.entries(result.rcodes))
    if (!workload.rcodes.includes(rcode)) doubts.push(`${count} answers ${rcode}`);
  if (workload.needsNewNames && result.sent > queries.lines)
    doubts.push(`names asked again, as there were ${queries.lines} for ${result.sent} queries`);
  if (othersShare > MOST_OTHERS)
    doubts.push(`other processes used ${Math.round(othersShare * 100)} % of a core`);
  return doubts;
}

export function doubtsAboutTiming({ sendDelay }: Pick<OpenLoopSample, "sendDelay">): string[] {
  if (sendDelay === undefined) return ["no answer at half rate"];
  if (sendDelay.p99 <= MOST_SEND_DELAY) return [];
  return [`the generator was late itself: p99 ${(sendDelay.p99 / 1000).toFixed(1)} ms`];
}
