import { globSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join, matchesGlob } from "node:path";
import { fileURLToPath } from "node:url";
import { provideBuild } from "./build.mjs";
import { capture } from "./captured-process.ts";
import { checked, NOTHING, type Outcome, sum } from "./outcome.ts";
import { StepFailure } from "./step.mjs";
import { runTestProcess } from "./test-process.ts";
import { toolPath } from "./tool-path.ts";

/** One line of the test report. */
export interface Step {
  readonly name: string;
  /** What `--only` may say for it: its name or its group. */
  readonly group: "static" | "tests";
  /** For `--help`. */
  readonly about: string;
  /** Whether it runs tests, so that a run of it without any test is an error. */
  readonly hasTests: boolean;
  run(selection: Selection): Promise<Outcome>;
}

export interface Selection {
  readonly root: string;
  /** Globs or folders that test files have to be in; none for all. */
  readonly files: readonly string[];
  /** A regular expression for names of tests. */
  readonly name?: string | undefined;
}

const MINUTE = 60_000;
/** What a linter says about a tree that is wholly wrong is of no use to the end. */
const MAX_OUTPUT_LINES = 200;

/** Some tools colour what they print where CI is set, even into a pipe. */
const PLAIN_OUTPUT = { ...process.env, CI: undefined, FORCE_COLOR: undefined, NO_COLOR: "1" };

const scripts = dirname(dirname(fileURLToPath(import.meta.url)));

const CORES = availableParallelism();

/** How many test processes run at a time. */
const PROCESSES = {
  /** Unit tests are busy all the time. Each process takes up to a gigabyte. */
  cpuBound: Math.min(2, CORES),
  /** Black-box tests mostly wait: for servers that start, for timers, for the network. */
  waiting: Math.min(4, 2 * CORES),
} as const;

/** What depends on sockets, memory and the start. All of `test/` would take as long again. */
const PLAIN_TESTS = [
  "test/transports/{descriptors,tcp-framing}.test.ts",
  "test/upstreams/{large-answers,upstreams}.test.ts",
  "test/reload/{empty-corefiles,refused-reload,signals}.test.ts",
];

/** The steps in their order: what is quick and says most about a mistake comes first. */
export const STEPS: readonly Step[] = [
  command("format", "biome format", ["biome", "format", "--colors=off"]),
  command("lint", "biome lint", ["biome", "lint", "--error-on-warnings", "--colors=off"]),
  command("promises", "oxlint with types", ["oxlint", "--type-aware"]),
  command("types", "the TypeScript compiler", ["tsc", "-p", ".", "--pretty", "false"]),
  command("page", "the TypeScript compiler, for the console's page", [
    "tsc",
    "-p",
    join("src", "console", "page"),
    "--pretty",
    "false",
  ]),
  command("runtime", "the register of what Node does not document", [
    "node",
    join(scripts, "check-runtime.ts"),
    ".",
  ]),
  command("floors", "what src/ may import, and its other rules", [
    "node",
    join(scripts, "check-floors.ts"),
    ".",
  ]),
  command("references", "whether what comments and pages refer to exists", [
    "node",
    join(scripts, "check-references.ts"),
    ".",
  ]),
  command("style", "the worst habits of our prose, see docs/contributing/style.md", [
    "node",
    join(scripts, "check-style.ts"),
    ".",
  ]),
  tests("unit", "src/**/*.test.ts, many in one process", ["src/**/*.test.ts"], runTogether),
  tests(
    "scripts",
    "tests of bin/, scripts/ and bench/, each file in a process of its own",
    ["scripts/**/*.test.ts", "bench/**/*.test.ts"],
    (files, selection) => runApart(files, selection, PROCESSES.cpuBound),
  ),
  tests(
    "program",
    "black-box tests of the built program, test/**/*.test.ts",
    ["test/**/*.test.ts"],
    async (files, selection) => {
      const built = await buildProgram(selection.root);
      return built.failed > 0 ? built : sum([built, await runApart(files, selection, PROCESSES.waiting)]);
    },
  ),
  tests(
    "plain",
    "some of these once more with PORTOLAN_RUNTIME=plain",
    PLAIN_TESTS,
    async (files, selection) => {
      const built = await buildProgram(selection.root);
      const env = { PORTOLAN_RUNTIME: "plain" };
      return built.failed > 0
        ? built
        : sum([built, await runApart(files, selection, PROCESSES.waiting, env)]);
    },
  ),
];

function command(name: string, about: string, [program = "", ...args]: readonly string[]): Step {
  const run = async ({ root }: Selection) => {
    // What npm links are scripts for Node, all but Node itself.
    const script = program === "node" ? [] : [toolPath(root, program)];
    const { code, signal, output } = await capture(process.execPath, [...script, ...args], {
      cwd: root,
      env: PLAIN_OUTPUT,
      timeout: 5 * MINUTE,
    });
    return checked(
      code === 0 ? undefined : firstLines(output) || `ended with ${signal ?? `exit code ${code}`}`,
    );
  };
  return { name, about, group: "static", hasTests: false, run };
}

function firstLines(output: string): string {
  const lines = output.trim().split("\n");
  const rest = lines.length - MAX_OUTPUT_LINES;
  return lines
    .slice(0, MAX_OUTPUT_LINES)
    .concat(rest > 0 ? `(and ${rest} lines more)` : [])
    .join("\n");
}

type RunFiles = (files: readonly string[], selection: Selection) => Promise<Outcome>;

function tests(name: string, about: string, patterns: readonly string[], runFiles: RunFiles): Step {
  const run = async (selection: Selection) => {
    const files = testFiles(patterns, selection);
    return files.length === 0 ? NOTHING : runFiles(files, selection);
  };
  return { name, about, group: "tests", hasTests: true, run };
}

/** Exported for its test. */
export function testFiles(patterns: readonly string[], { root, files }: Selection): string[] {
  const all = globSync([...patterns], {
    cwd: root,
    exclude: ["**/node_modules/**", "**/fixtures/**"],
  }).sort();
  if (files.length === 0) return all;
  const globs = files.flatMap((file) => [file, join(file, "**")]);
  return all.filter((file) => globs.some((glob) => matchesGlob(file, glob)));
}

/**
 * Test files of one process. Each process compiles the program anew, which takes seconds; what tests leave in memory stays until the
 * process ends, which adds up to gigabytes.
 */
const FILES_TOGETHER = 16;

/** Neighbours share a process: they need the same modules. */
function runTogether(files: readonly string[], selection: Selection): Promise<Outcome> {
  const groups = Array.from({ length: Math.ceil(files.length / FILES_TOGETHER) }, (_, index) =>
    files.slice(index * FILES_TOGETHER, (index + 1) * FILES_TOGETHER),
  );
  return runGroups(groups, selection, { processes: PROCESSES.cpuBound, testTimeout: MINUTE });
}

/** Each file in a process of its own. */
function runApart(
  files: readonly string[],
  selection: Selection,
  processes: number,
  env?: Readonly<Record<string, string>>,
): Promise<Outcome> {
  return runGroups(
    files.map((file) => [file]),
    selection,
    { processes, testTimeout: 2 * MINUTE, env },
  );
}

interface GroupOptions {
  /** How many run at a time. */
  readonly processes: number;
  /** Milliseconds. */
  readonly testTimeout: number;
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/** Each group in a process of its own. */
async function runGroups(
  groups: readonly (readonly string[])[],
  { root, name }: Selection,
  { processes, testTimeout, env }: GroupOptions,
): Promise<Outcome> {
  const waiting = groups.entries();
  const outcomes: Outcome[] = [];
  const worker = async () => {
    for (const [index, files] of waiting)
      outcomes[index] = await runTestProcess(files, {
        cwd: root,
        env,
        name,
        testTimeout,
        timeout: 10 * MINUTE,
      });
  };
  await Promise.all(Array.from({ length: processes }, worker));
  return sum(outcomes);
}

async function buildProgram(root: string): Promise<Outcome> {
  try {
    await provideBuild(root, process.execPath, { types: true });
    return NOTHING;
  } catch (error) {
    if (error instanceof StepFailure) return checked(error.message);
    throw error;
  }
}
