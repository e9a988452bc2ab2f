// The benchmark: npm run bench -- --help
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { provideBuild } from "../scripts/lib/build.mjs";
import { killAll } from "../scripts/lib/captured-process.ts";
import { runScript, StepFailure } from "../scripts/lib/step.mjs";
import { missingTools } from "../scripts/lib/system-tools.mjs";
import { runBenchmark } from "./benchmark.ts";
import { runBesideBenchmark } from "./cluster/run-beside.ts";
import { runClusterBenchmark } from "./cluster/run-cluster.ts";
import { runConsoleBenchmark } from "./console/run-console.ts";
import { runLimitedBenchmark, runMemoryBenchmark } from "./memory/run-memory.ts";
import { type BenchmarkOptions, HELP, OptionError, parseOptions } from "./options.ts";
import { drawChart } from "./report/chart.ts";
import { writeMarkdown } from "./report/markdown.ts";
import { noResults, type Results } from "./results.ts";
import { WrongAnswer } from "./run/check-answers.ts";
import { runSoakBenchmark } from "./soak/run-soak.ts";
import { runZoneBenchmark } from "./zones/run-zones.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

process.once("exit", killAll);
// An exit by process.exit lets the servers and generators be ended as well.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));

await runScript(async () => {
  const options = readOptions();
  if (options === undefined) return;
  requireTools(
    options.onlyCluster || options.onlyZones ? ["dnsperf", "taskset"] : ["dnsperf", "unbound", "taskset"],
  );
  if (options.build) await provideBuild(root, process.execPath, { types: false });
  const folder = mkdtempSync(join(tmpdir(), "portolan-bench-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const former = readResults(options.output);
  const results = await measured(options, former, folder);
  writeResults(results, options.output);
  if (results.failures.length > 0) process.exitCode = 1;
});

/** The new results, merged into the old ones. */
async function measured(
  options: BenchmarkOptions,
  former: Results | undefined,
  folder: string,
): Promise<Results> {
  if (options.onlyCluster && options.others.length > 0) return await withBeside(former, folder, options);
  if (options.onlyCluster) return await withCluster(former, folder);
  if (options.limit !== undefined) return await withLimited(former, folder, options.limit);
  if (options.soak !== undefined) return await withSoak(former, folder, options.soak);
  if (options.onlyMemory || options.mixed !== undefined) return await withMemory(former, folder, options);
  if (options.onlyZones) return await withZones(former, folder, options);
  if (options.onlyConsole) return await withConsole(former, folder, options);
  const { cluster, beside, memory, limited, soak, zones, console: ofConsole } = former ?? {};
  const fresh = await run(options, folder);
  return { ...fresh, cluster, beside, memory, limited, soak, zones, console: ofConsole };
}

async function run(options: BenchmarkOptions, folder: string): Promise<Results> {
  try {
    return await runBenchmark(options, root, folder, { say: (line) => console.log(line) });
  } catch (error) {
    if (error instanceof WrongAnswer)
      throw new StepFailure(`A wrong answer ends the benchmark. ${error.message}`);
    throw error;
  }
}

/** The results of the last run, with the live cluster measured anew. */
async function withCluster(former: Results | undefined, folder: string): Promise<Results> {
  const cluster = await runClusterBenchmark(root, folder, (line) => console.log(line));
  return { ...(former ?? noResults(cluster.machine, cluster.startedAt)), cluster };
}

async function withBeside(
  former: Results | undefined,
  folder: string,
  { others, rounds }: BenchmarkOptions,
): Promise<Results> {
  const beside = await runBesideBenchmark(root, folder, {
    others,
    rounds,
    say: (line) => console.log(line),
  });
  return { ...(former ?? noResults(beside.machine, beside.startedAt)), beside };
}

async function withMemory(
  former: Results | undefined,
  folder: string,
  { mixed, turns }: BenchmarkOptions,
): Promise<Results> {
  const memory = await runMemoryBenchmark(root, folder, { mixed, turns, say: (line) => console.log(line) });
  return { ...(former ?? noResults(memory.machine, memory.startedAt)), memory };
}

async function withLimited(former: Results | undefined, folder: string, mebibytes: number): Promise<Results> {
  const limited = await runLimitedBenchmark(root, folder, mebibytes, (line) => console.log(line));
  return { ...(former ?? noResults(limited.machine, limited.startedAt)), limited };
}

async function withSoak(former: Results | undefined, folder: string, minutes: number): Promise<Results> {
  const soak = await runSoakBenchmark(root, folder, minutes, (line) => console.log(line));
  return { ...(former ?? noResults(soak.machine, soak.startedAt)), soak };
}

async function withZones(
  former: Results | undefined,
  folder: string,
  { seconds, rounds }: BenchmarkOptions,
): Promise<Results> {
  const zones = await runZoneBenchmark(root, folder, { seconds, rounds, say: (line) => console.log(line) });
  return { ...(former ?? noResults(zones.machine, zones.startedAt)), zones };
}

async function withConsole(
  former: Results | undefined,
  folder: string,
  { seconds, rounds }: BenchmarkOptions,
): Promise<Results> {
  const found = await runConsoleBenchmark(root, folder, {
    seconds,
    rounds,
    say: (line) => console.log(line),
  });
  return { ...(former ?? noResults(found.machine, found.startedAt)), console: found };
}

function readResults(folder: string): Results | undefined {
  const file = join(folder, "results.json");
  if (!existsSync(file)) return undefined;
  const results: Results = JSON.parse(readFileSync(file, "utf8"));
  return results;
}

function readOptions(): BenchmarkOptions | undefined {
  try {
    const options = parseOptions(process.argv.slice(2));
    if (options !== "help") return options;
    console.log(HELP);
    return undefined;
  } catch (error) {
    if (error instanceof OptionError) throw new StepFailure(`${error.message}\n`, HELP);
    throw error;
  }
}

function requireTools(tools: readonly string[]): void {
  if (process.platform !== "linux") throw new StepFailure("The benchmark needs Linux: it reads /proc.");
  if (availableParallelism() < 2)
    throw new StepFailure("The benchmark needs two cores: one for the server, one for the load.");
  // Where the servers of Debian's packages are; not every user has it in PATH.
  process.env.PATH = `${process.env.PATH}:/usr/sbin`;
  const missing = missingTools(tools, process.env.PATH);
  if (missing.length === 0) return;
  throw new StepFailure(
    `Not installed: ${missing.join(", ")}. The benchmark cannot do without.`,
    "On Debian or Ubuntu: sudo apt-get install --no-install-recommends dnsperf nghttp2-client unbound dnsmasq-base gcc libc6-dev",
  );
}

function writeResults(results: Results, folder: string): void {
  mkdirSync(folder, { recursive: true });
  const files = {
    "RESULTS.md": writeMarkdown(results),
    "results.json": `${JSON.stringify(results, undefined, 1)}\n`,
    "results.svg": drawChart(results),
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  console.log(`Results: ${join(folder, "RESULTS.md")}, results.json, results.svg`);
}
