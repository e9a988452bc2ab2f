/** The same loads in turns on a server that may have little memory, and on one that may have all. */
import { FULL_SIZE } from "../cluster/cluster-shape.ts";
import { ControlGroup } from "./control-group.ts";
import { LoadedServer } from "./measure-run.ts";
import type { LimitedSample, LimitedStep, StepSample } from "./memory-results.ts";

export interface LimitedOptions {
  readonly mebibytes: number;
  readonly folder: string;
  /** Of each load. */
  readonly seconds: number;
  /** How often each server has each load: an even number, so that neither is always the first. */
  readonly times: number;
  readonly say: (line: string) => void;
}

/** @throws Error where a server ends: that is what a limit too low does */
export async function measureLimited(options: LimitedOptions): Promise<LimitedSample> {
  const { mebibytes, folder, seconds, times, say } = options;
  using group = new ControlGroup(`portolan-bench-${process.pid}`, mebibytes);
  const common = { size: FULL_SIZE, folder, seconds, threads: 1, turns: undefined, say };
  const steps = new Map<string, { readonly limited: StepSample[]; readonly free: StepSample[] }>();
  let restMegabytes: number;
  {
    await using limited = await LoadedServer.start({ ...common, name: "limited", group });
    await using free = await LoadedServer.start({ ...common, name: "free" });
    restMegabytes = limited.restMegabytes;
    for (let time = 1; time <= times; time++) {
      const ofFree = free.loads(time);
      for (const [index, load] of limited.loads(time).entries()) {
        const same = ofFree[index];
        if (same === undefined) continue;
        const samples = steps.get(load.step) ?? { limited: [], free: [] };
        steps.set(load.step, samples);
        const turns = [
          async () => samples.limited.push(await limited.measure(load)),
          async () => samples.free.push(await free.measure(same)),
        ];
        for (const turn of time % 2 === 1 ? turns : turns.reverse()) await turn();
        const [last, lastFree] = [samples.limited.at(-1), samples.free.at(-1)];
        say(
          `    ${load.step}: ${last?.queriesPerSecond.toFixed(0)}/s, without the limit ${lastFree?.queriesPerSecond.toFixed(0)}/s; ` +
            `${last?.microseconds?.toFixed(2)} µs of CPU a query, ${lastFree?.microseconds?.toFixed(2)}; ` +
            `${last?.peakMegabytes.toFixed(0)} MB at most, ${lastFree?.peakMegabytes.toFixed(0)} MB; ` +
            `limit reached ${group.events.reclaims} times, ${group.events.kills} killed`,
        );
      }
    }
  }
  return {
    mebibytes,
    restMegabytes,
    events: group.events,
    steps: [...steps].map(([step, both]) => summary(step, both)),
  };
}

function summary(
  step: string,
  { limited, free }: { readonly limited: readonly StepSample[]; readonly free: readonly StepSample[] },
): LimitedStep {
  const toFree = (figure: (sample: StepSample) => number | undefined): number[] =>
    limited.map((sample, at) => {
      const same = free[at];
      return (figure(sample) ?? Number.NaN) / ((same === undefined ? same : figure(same)) ?? Number.NaN);
    });
  return {
    step,
    ratios: toFree((sample) => sample.queriesPerSecond),
    costRatios: toFree((sample) => sample.microseconds),
    lost: limited.reduce((sum, sample) => sum + sample.lost, 0),
    peakMegabytes: Math.max(...limited.map((sample) => sample.peakMegabytes)),
    freePeakMegabytes: Math.max(...free.map((sample) => sample.peakMegabytes)),
  };
}
