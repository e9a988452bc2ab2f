// The checks and tests of the project, each step with one line, and the sum of all at the end.
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { killAll } from "./lib/captured-process.ts";
import { EXPECTED_SKIPS, readExpectedSkips } from "./lib/expected-skips.ts";
import { checked, countsText, NOTHING, type Outcome, sum } from "./lib/outcome.ts";
import { canInstallTools, provideTools } from "./lib/system-tools.mjs";
import type { SkippedTest } from "./lib/test-events.ts";
import { STEPS, type Step } from "./lib/test-plan.ts";
import { changedFiles, touchedTests } from "./lib/touched-tests.ts";

const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)));

const HELP = `npm test -- [--only STEP[,STEP]] [--files GLOB] [--name PATTERN] [--changed] [--since REF] [--times] [--skips KIND]

  --only STEP     one or more of the steps below, or "static" or "tests"
  --files GLOB    only test files there, such as src/dns or 'src/plugins/cache/*.test.ts'
  --name PATTERN  only tests whose name matches this regular expression
  --changed       only tests that uncommitted changes touch, and all static checks
  --since REF     only tests that changes since that commit or branch touch, and all static checks
  --times         show how long each process of tests took, the slowest first
  --skips KIND    "listed": a test may only be skipped for a reason in ${EXPECTED_SKIPS}, else the run fails.
                  "any": for any reason. Default "listed" on Debian as root, where everything is installed, else "any"

${STEPS.map(({ name, about }) => `  ${name.padEnd(10)}${about}`).join("\n")}

Under another Node than the pinned one: path/to/node scripts/run-tests.ts
`;

// Test processes lead process groups of their own, so nothing else ends them.
process.on("exit", killAll);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => {
    killAll();
    process.kill(process.pid, signal);
  });
}

process.exitCode = await main();

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: "string", multiple: true },
      files: { type: "string", multiple: true },
      name: { type: "string" },
      skips: { type: "string", default: canInstallTools() ? "listed" : "any" },
      changed: { type: "boolean" },
      since: { type: "string" },
      times: { type: "boolean" },
      root: { type: "string", default: projectRoot },
      help: { type: "boolean" },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const only = (values.only ?? []).flatMap((text) => text.split(","));
  const files = (values.files ?? []).map((file) => relative(values.root, resolve(values.root, file)));
  const unknown = only.filter((word) => !STEPS.some(({ name, group }) => word === name || word === group));
  if (unknown.length > 0) {
    console.error(`No such step: ${unknown.join(", ")}\n\n${HELP}`);
    return 2;
  }
  if (values.skips !== "listed" && values.skips !== "any") {
    console.error(`--skips takes "listed" or "any"\n\n${HELP}`);
    return 2;
  }
  const since = values.since ?? (values.changed ? "HEAD" : undefined);
  const touched = since === undefined ? undefined : await findTouched(values.root, since);
  if (touched !== undefined) {
    console.log(`Test files touched by changes since ${since}: ${touched.length}`);
    files.push(...touched);
  }
  const filtersTests = (files.length > 0 && touched === undefined) || values.name !== undefined;
  const selected = STEPS.filter((step) => isSelected(step, only, filtersTests)).filter(
    ({ hasTests }) => !hasTests || touched?.length !== 0,
  );
  if (values.root === projectRoot && selected.some(({ hasTests }) => hasTests))
    await provideTools(projectRoot);
  const outcomes: Outcome[] = [];
  for (const step of selected) {
    const outcome = await runStep(step, { root: values.root, files, name: values.name });
    outcomes.push(outcome);
  }

  const total = sum(outcomes);
  if (values.times) reportTimes(total);
  const noTests =
    selected.some((step) => step.hasTests) && !selected.some((step, at) => ranTests(step, outcomes[at]));
  if (noTests) console.log("No test ran.");
  const unexpected = reportSkips(total.skips, values.root, values.skips === "listed");
  const counted = { ...total, failed: total.failed + unexpected };
  console.log(`\n${countsText(counted)}`);
  return counted.failed > 0 || noTests || total.passed === 0 ? 1 : 0;
}

async function findTouched(root: string, since: string): Promise<readonly string[]> {
  const changed = await changedFiles(root, since);
  const paths = globSync("{src,test,bench,scripts,bin}/**/*.{ts,mjs}", { cwd: root });
  const sources = new Map(paths.map((path) => [path, readFileSync(join(root, path), "utf8")]));
  return [...touchedTests(changed, sources)];
}

/**
 * Prints the reasons of skipped tests.
 * @param demandsList whether a reason has to be in the project's list
 * @returns how many tests were skipped for a reason that is not
 */
function reportSkips(skips: readonly SkippedTest[], root: string, demandsList: boolean): number {
  const expected = readExpectedSkips(root);
  let unexpected = 0;
  for (const [reason, tests] of Map.groupBy(skips, (skip) => skip.reason)) {
    console.log(`Skipped ${tests.length}: ${reason || "no reason given"}`);
    if (!demandsList || expected.some((pattern) => pattern.test(reason))) continue;
    unexpected += tests.length;
    console.log(`  FAIL: ${EXPECTED_SKIPS} does not list this reason. Install what is missing, or list it.`);
    for (const { place, name } of tests.slice(0, 10)) console.log(`        ${place}  ${name}`);
  }
  return unexpected;
}

function reportTimes({ times }: Outcome): void {
  for (const { seconds, files } of times.toSorted((a, b) => b.seconds - a.seconds)) {
    const more = files.length > 1 ? ` and ${files.length - 1} more` : "";
    console.log(`${seconds.toFixed(1).padStart(7)} s  ${files[0]}${more}`);
  }
}

function isSelected(step: Step, only: readonly string[], filtersTests: boolean): boolean {
  if (filtersTests && !step.hasTests) return false;
  return only.length === 0 || only.includes(step.name) || only.includes(step.group);
}

async function runStep(step: Step, selection: Parameters<Step["run"]>[0]): Promise<Outcome> {
  const start = performance.now();
  const outcome = await step.run(selection).catch((error: unknown) => checked(String(error)));
  if (outcome === NOTHING && selection.files.length > 0) return outcome;
  const seconds = `${((performance.now() - start) / 1000).toFixed(1)} s`;
  const label = `${outcome.failed > 0 ? "FAIL" : "ok  "}  ${step.name.padEnd(10)}${seconds.padStart(8)}`;
  if (!step.hasTests) console.log(label);
  else console.log(`${label}  ${outcome === NOTHING ? "no test files" : countsText(outcome)}`);
  if (outcome.details !== "") console.log(outcome.details.replace(/^/gm, "      "));
  return outcome;
}

function ranTests(step: Step, outcome: Outcome | undefined): boolean {
  return step.hasTests && outcome !== undefined && outcome.passed + outcome.failed > 0;
}
