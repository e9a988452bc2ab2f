/** The benchmark of memory and pauses: `--memory`, over a long time `--mixed`, and within a limit `--limit`. */
import { capture } from "../../scripts/lib/captured-process.ts";
import { FULL_SIZE, USUAL_SIZE } from "../cluster/cluster-shape.ts";
import { describeMachine } from "../machine.ts";
import { writeClusterFiles } from "../material.ts";
import { moveToLoadCore } from "../run/cores.ts";
import { startUpstream } from "../run/upstream.ts";
import { PORTOLAN } from "../servers/portolan.ts";
import { UNBOUND } from "../servers/unbound.ts";
import { measureLimited } from "./measure-limited.ts";
import { measureNames } from "./measure-names.ts";
import { measureRun } from "./measure-run.ts";
import type { LimitedResults, MemoryResults, NamesSample, RunSample } from "./memory-results.ts";
import { externalNames, longNames, writeQueries } from "./query-lists.ts";

/** Of each load. */
const SECONDS = 12;
/** Loads in a row that is gone through once. */
const LOADS = 7;

export interface MemoryOptions {
  /** Minutes that the usual cluster is loaded in place of everything else. */
  readonly mixed: number | undefined;
  /** A folder for what ran in the longest turns of each load. */
  readonly turns: string | undefined;
  readonly say: (line: string) => void;
}

/** @throws Error where a server ends, loses names while its cache is filled, or does not become ready */
export async function runMemoryBenchmark(
  root: string,
  folder: string,
  { mixed, turns, say }: MemoryOptions,
): Promise<MemoryResults> {
  const startedAt = new Date().toISOString();
  const [command, ...args] = moveToLoadCore(process.pid);
  await capture(command, args, { cwd: "/", timeout: 10_000 });
  const machine = await describeMachine(root);
  const times = mixed === undefined ? 1 : Math.max(1, Math.round((mixed * 60) / (LOADS * SECONDS)));
  const names = mixed === undefined ? await allNames(folder, say) : [];
  const runs: RunSample[] = [];
  const usual = { folder, seconds: SECONDS, say, turns, threads: 1, times };
  const run = async (options: Parameters<typeof measureRun>[0]): Promise<void> => {
    say(`${options.name}: ${options.about}`);
    runs.push(await measureRun(options));
  };
  await run({ ...usual, name: "usual", about: "500 Services, 5,000 endpoints", size: USUAL_SIZE });
  if (mixed === undefined) {
    const large = { ...usual, size: FULL_SIZE, times: 2 };
    await run({ ...large, name: "large", about: "8,000 Services, 150,000 endpoints, all loads twice" });
    await run({
      ...large,
      times: 1,
      threads: 2,
      name: "threads-2",
      about: "as `large`, with `multisocket 2`",
    });
  }
  return { startedAt, machine, names, runs, seconds: SECONDS };
}

/** How often both servers have each load. */
const TURNS = 4;

/**
 * All loads inside of a control group with so much memory, and beside it.
 * @throws Error where a server ends
 */
export async function runLimitedBenchmark(
  root: string,
  folder: string,
  mebibytes: number,
  say: (line: string) => void,
): Promise<LimitedResults> {
  const startedAt = new Date().toISOString();
  const [command, ...args] = moveToLoadCore(process.pid);
  await capture(command, args, { cwd: "/", timeout: 10_000 });
  const machine = await describeMachine(root);
  say(`in ${mebibytes} MiB and without a limit, in turns: 8,000 Services, 150,000 endpoints`);
  const sample = await measureLimited({ mebibytes, folder, seconds: SECONDS, times: TURNS, say });
  return { startedAt, machine, seconds: SECONDS, sample };
}

async function allNames(folder: string, say: (line: string) => void): Promise<NamesSample[]> {
  const cluster = writeClusterFiles(folder);
  await using upstream = await startUpstream(folder);
  const samples: NamesSample[] = [];
  const measure = async (kind: typeof PORTOLAN, names: number, queries: string): Promise<void> => {
    const sample = await measureNames({ kind, names, queries, folder, cluster, upstreamPort: upstream.port });
    samples.push(sample);
    say(
      `${names} names in ${kind.name}: ${sample.megabytes.toFixed(0)} MB, half a minute later ${sample.laterMegabytes?.toFixed(0)} MB`,
    );
  };
  const hundredThousand = writeQueries(folder, "names-100k", externalNames(100_000));
  await measure(PORTOLAN, 100_000, hundredThousand);
  await measure(UNBOUND, 100_000, hundredThousand);
  await measure(PORTOLAN, 1_000_000, writeQueries(folder, "names-1m", longNames(1_000_000)));
  return samples;
}
