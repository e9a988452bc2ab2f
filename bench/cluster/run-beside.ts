/** The benchmark of changes: Portolan and other servers in turns, each beside an API of its own. */
import { capture } from "../../scripts/lib/captured-process.ts";
import { describeMachine, ticksPerSecond } from "../machine.ts";
import { moveToLoadCore } from "../run/cores.ts";
import { liveServer, type OtherServer } from "../servers/other.ts";
import type { BesideResults, BesideSample } from "./beside-results.ts";
import { THREE_THOUSAND_SERVICES } from "./cluster-shape.ts";
import { PORTOLAN } from "./live-server.ts";
import { type BesideDurations, measureBeside } from "./measure-beside.ts";
import { OtherProcesses } from "./other-processes.ts";

const DURATIONS: BesideDurations = { rest: 12, idle: 20, cold: 40, steady: 30, quick: 10, seen: 100 };

export interface BesideRun {
  readonly others: readonly OtherServer[];
  readonly rounds: number;
  readonly say: (line: string) => void;
}

/**
 * @param root the project's folder
 * @param folder for everything that is needed meanwhile
 * @throws Error where a server or the API ends, or a server does not become ready
 */
export async function runBesideBenchmark(
  root: string,
  folder: string,
  { others, rounds, say }: BesideRun,
): Promise<BesideResults> {
  const startedAt = new Date().toISOString();
  const [command, ...args] = moveToLoadCore(process.pid);
  await capture(command, args, { cwd: "/", timeout: 10_000 });
  const machine = await describeMachine(root);
  const ticks = await ticksPerSecond();
  const busy = new OtherProcesses(ticks);
  const size = THREE_THOUSAND_SERVICES;
  const samples: BesideSample[] = [];
  for (let round = 1; round <= rounds; round++)
    for (const server of [PORTOLAN, ...others.map(liveServer)]) {
      say(`changes beside ${server.name}, round ${round} of ${rounds}`);
      const sample = await measureBeside({
        ...{ server, size, folder, ticksPerSecond: ticks },
        durations: DURATIONS,
      });
      samples.push({ round, ...sample });
      say(`    ${describeSample(sample)}`);
      busy.look(`${server.name}, round ${round}`);
    }
  return { startedAt, machine, size, samples, doubts: busy.doubts };
}

function describeSample(sample: Omit<BesideSample, "round">): string {
  const { loadSeconds, idleShare, loads, sliceChanged, serviceNew, peakMegabytes } = sample;
  const each = loads.map(({ rate, microseconds }) => `${microseconds.toFixed(0)} µs at ${rate}/s`);
  const times = [sliceChanged, serviceNew].map(
    ({ latency }) =>
      `${((latency?.p50 ?? 0) / 1000).toFixed(2)}/${((latency?.p99 ?? 0) / 1000).toFixed(2)} ms`,
  );
  return [
    `load ${loadSeconds.toFixed(2)} s`,
    `idle ${(idleShare * 100).toFixed(2)} %`,
    ...each,
    `slice changed ${times[0]}`,
    `Service new ${times[1]}`,
    `at most ${peakMegabytes.toFixed(0)} MB`,
  ].join(", ");
}
