/** Times in which the server did not run: CPU quota, a busy machine, or its own work. */
import type { Capture, CapturedServer } from "./capture.ts";
import { shellWord } from "./command-words.ts";
import { type Cause, percent, type Remedy, type Rule } from "./finding.ts";

/** Milliseconds. */
const LONG_P99 = 100;
const LONGEST = 1_000;
/** Share of the quota's periods. */
const THROTTLED = 0.1;
const LEAST_PERIODS = 20;
/** Percentage of a minute in which threads of the machine wait for a processor. */
const PRESSURE = 40;

export const stalls: Rule = (capture) => {
  const { last, pod } = capture;
  if (last === undefined) return [{ code: "stalls", reason: "the capture has no facts about the server" }];
  const { p99, longest } = last.now.pauses;
  const quota = throttling(capture);
  const isThrottled = quota !== undefined && quota.share >= THROTTLED;
  if (p99 < LONG_P99 && longest < LONGEST && !isThrottled) return [];
  const pressure = last.machine.cpu?.pressure ?? undefined;
  const causes: Cause[] = [
    {
      who: "the process",
      figure: `paused for ${Math.round(longest)} ms at the longest in the last minute; 99 % of the pauses are below ${Math.round(p99)} ms`,
    },
  ];
  if (quota !== undefined && quota.throttled > 0)
    causes.push({
      who: "CPU limit",
      figure: `throttled in ${percent(quota.share)} of its periods ${quota.since}, for ${Math.round(quota.throttled)} ms in all (cpu.stat)`,
    });
  if (pressure !== undefined && pressure >= PRESSURE)
    causes.push({
      who: "the machine",
      figure: `threads waited for a processor during ${Math.round(pressure)} % of the last minute (/proc/pressure/cpu)`,
    });
  return [
    {
      code: "stalls",
      title: isThrottled
        ? `the CPU limit stops the server: it was throttled in ${percent(quota.share)} of its periods`
        : `the server stood still for up to ${Math.round(longest)} ms${pressure !== undefined && pressure >= PRESSURE ? ", on a machine that is short of CPU" : ""}`,
      explanation:
        "Queries wait as long as the server does not run. The durations of single queries do not show it: a query that waits in the socket has not arrived yet.",
      share: undefined,
      figures: {
        p99,
        longest,
        throttledShare: quota?.share ?? 0,
        throttled: quota?.throttled ?? 0,
        pressure: pressure ?? 0,
      },
      causes,
      remedies: remedies(isThrottled, pod),
    },
  ];
};

interface Throttling {
  /** Share of the periods. */
  readonly share: number;
  /** Milliseconds. */
  readonly throttled: number;
  readonly since: string;
}

/** During the capture, or since the start of the container if the capture is short. */
function throttling({ first, last }: Capture): Throttling | undefined {
  const cpu = cpuOf(last);
  if (cpu === undefined) return undefined;
  const before = cpuOf(first);
  const periods = cpu.periods - (before?.periods ?? 0);
  const isLong = before !== undefined && periods >= LEAST_PERIODS;
  const from = isLong ? before : undefined;
  const all = cpu.periods - (from?.periods ?? 0);
  if (all < LEAST_PERIODS) return undefined;
  return {
    share: (cpu.throttledPeriods - (from?.throttledPeriods ?? 0)) / all,
    throttled: cpu.throttled - (from?.throttled ?? 0),
    since: isLong ? "while this ran" : "since the container started",
  };
}

function cpuOf(facts: CapturedServer | undefined): NonNullable<CapturedServer["machine"]["cpu"]> | undefined {
  return facts?.machine.cpu ?? undefined;
}

function remedies(isThrottled: boolean, pod: Capture["pod"]): Remedy[] {
  if (!isThrottled)
    return [{ text: "give the server more CPU: a larger request, a less busy node, or one more replica" }];
  const text = "remove the CPU limit, and keep the request: it is what the scheduler guarantees";
  if (pod === undefined) return [{ text }];
  const [kind = "", name = ""] = pod.owner.split("/");
  const resources = { containers: [{ name: pod.container, resources: { limits: { cpu: null } } }] };
  const patch = JSON.stringify({ spec: { template: { spec: resources } } });
  return [
    {
      text,
      patch: `kubectl -n ${shellWord(pod.namespace)} patch ${kind} ${shellWord(name)} -p ${shellWord(patch)}`,
    },
  ];
}
