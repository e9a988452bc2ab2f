// The benchmark: npm run bench -- --help
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { provideBuild } from "../scripts/lib/build.mjs";
import { killAll } from "../scripts/lib/captured-process.ts";
import { runScript, StepFailure } from "../scripts/lib/step.mjs";
import { missingTools } from "../scripts/lib/system-tools.mjs";
import { runBenchmark } from "./benchmark.ts";
import { type BenchmarkOptions, HELP, OptionError, parseOptions } from "./options.ts";
import { drawChart } from "./report/chart.ts";
import { writeMarkdown } from "./report/markdown.ts";
import type { Results } from "./results.ts";
import { WrongAnswer } from "./run/check-answers.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

process.once("exit", killAll);
// An exit by process.exit lets the servers and generators be ended as well.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));

await runScript(async () => {
  const options = readOptions();
  if (options === undefined) return;
  requireTools();
  if (options.build) await provideBuild(root, process.execPath);
  const folder = mkdtempSync(join(tmpdir(), "portolan-bench-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const results = await run(options, folder);
  writeResults(results, options.output);
  if (results.failures.length > 0) process.exitCode = 1;
});

async function run(options: BenchmarkOptions, folder: string): Promise<Results> {
  try {
    return await runBenchmark(options, root, folder, { say: (line) => console.log(line) });
  } catch (error) {
    if (error instanceof WrongAnswer)
      throw new StepFailure(`A wrong answer ends the benchmark. ${error.message}`);
    throw error;
  }
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

function requireTools(): void {
  if (process.platform !== "linux") throw new StepFailure("The benchmark needs Linux: it reads /proc.");
  if (availableParallelism() < 2)
    throw new StepFailure("The benchmark needs two cores: one for the server, one for the load.");
  // Where the servers of Debian's packages are; not every user has it in PATH.
  process.env.PATH = `${process.env.PATH}:/usr/sbin`;
  const missing = missingTools(["dnsperf", "unbound", "taskset"], process.env.PATH);
  if (missing.length === 0) return;
  throw new StepFailure(
    `Not installed: ${missing.join(", ")}. The benchmark cannot do without.`,
    "On Debian or Ubuntu: sudo apt-get install --no-install-recommends dnsperf unbound dnsmasq-base gcc libc6-dev",
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
