import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type CapturedProcess, capture } from "./captured-process.ts";
import type { Outcome } from "./outcome.ts";
import {
  ENDING_TIME_VARIABLE,
  EVENTS_FILE_VARIABLE,
  MEMORY_VARIABLE,
  type TestEventLine,
} from "./test-events.ts";

/** A process that runs many test files frees unreferenced buffers above this many bytes. */
const COLLECTED_ABOVE = 64 * 1024 * 1024;

/** The C library gives blocks of this size back as soon as they are freed; else it keeps them in case that they are needed again. */
const GIVEN_BACK = { MALLOC_MMAP_THRESHOLD_: String(1024 * 1024) };

const scripts = dirname(dirname(fileURLToPath(import.meta.url)));

export interface TestProcessOptions {
  readonly cwd: string;
  /** Variables beside those of this process. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Milliseconds for a single test. */
  readonly testTimeout: number;
  /** Milliseconds for the whole process. */
  readonly timeout: number;
  /** Milliseconds that the process has to end after its last test. Default 10,000. */
  readonly endingTime?: number;
  /** A regular expression: only tests with such names run. */
  readonly name?: string | undefined;
}

/**
 * Runs test files in one process, and reads the counts from the runner. A process that crashes, hangs or ends
 * early counts as one failed test more than the runner got to tell.
 */
export async function runTestProcess(
  files: readonly string[],
  options: TestProcessOptions,
): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), "portolan-test-"));
  const eventsFile = join(folder, "events.jsonl");
  try {
    const args = [
      "--import",
      join(scripts, "test-guard.mjs"),
      "--test",
      "--test-isolation=none",
      `--test-timeout=${options.testTimeout}`,
      `--test-reporter=${join(scripts, "test-reporter.ts")}`,
      ...(options.name === undefined ? [] : [`--test-name-pattern=${options.name}`]),
      ...files,
    ];
    // A `node` that a test starts is the one that runs the test.
    const path = `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ""}`;
    const env = {
      ...process.env,
      ...options.env,
      PATH: path,
      [EVENTS_FILE_VARIABLE]: eventsFile,
      [ENDING_TIME_VARIABLE]: String(options.endingTime ?? 10_000),
      // A file alone is left alone: it may be about what is freed, and when.
      ...(files.length > 1 && { [MEMORY_VARIABLE]: String(COLLECTED_ABOVE), ...GIVEN_BACK }),
      // With it the runner would take itself for a part of another one.
      NODE_TEST_CONTEXT: undefined,
    };
    const start = performance.now();
    const ended = await capture(process.execPath, args, { cwd: options.cwd, timeout: options.timeout, env });
    const seconds = (performance.now() - start) / 1000;
    return { ...outcomeOf(ended, readEvents(eventsFile), files), times: [{ files, seconds }] };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readEvents(file: string): TestEventLine[] {
  try {
    const lines = readFileSync(file, "utf8").split("\n");
    // A line that a crash cut off is not ended by a line feed.
    return lines.slice(0, -1).map((line): TestEventLine => JSON.parse(line));
  } catch {
    return [];
  }
}

function outcomeOf(
  ended: CapturedProcess,
  events: readonly TestEventLine[],
  files: readonly string[],
): Omit<Outcome, "times"> {
  const failures = events.filter((event) => event.kind === "failed");
  const skipped = events.filter((event) => event.kind === "skipped");
  const summary = events.find((event) => event.kind === "summary");
  const counts = summary ?? {
    passed: events.filter((event) => event.kind === "passed").length,
    failed: failures.filter((event) => event.counted).length,
    skipped: skipped.length,
  };
  const problem = problemOf(ended, events, files);
  const unexplained = summary === undefined || (counts.failed === 0 && problem !== undefined);
  const details = [
    ...failures.map(({ place, name, error }) => `${place}  ${name}\n${indent(error)}`),
    ...(problem === undefined ? [] : [problem]),
  ];
  if (details.length > 0 && ended.output.trim() !== "")
    details.push(`Printed meanwhile:\n${indent(ended.output.trimEnd())}`);

  return {
    passed: counts.passed,
    failed: counts.failed + (unexplained ? 1 : 0),
    skipped: counts.skipped,
    details: details.join("\n"),
    skips: skipped,
  };
}

/** What went wrong besides failed tests. */
function problemOf(
  ended: CapturedProcess,
  events: readonly TestEventLine[],
  files: readonly string[],
): string | undefined {
  const what = files.length === 1 ? files[0] : `${files.length} test files in one process`;
  const leftOpen = events.find((event) => event.kind === "left-open");
  if (leftOpen !== undefined) {
    return `${what}: does not end after the last test, as these are open: ${leftOpen.resources.join(", ")}`;
  }
  const careless = events.filter((event) => event.kind === "careless").map((event) => event.text);
  if (careless.length > 0) {
    const lines = careless.map((text) => `  ${text}`).join("\n");
    return `${what}: these need a listener for "error" before their test goes on:\n${lines}`;
  }
  if (ended.timedOut) return `${what}: took too long and was killed`;
  const summary = events.find((event) => event.kind === "summary");
  if (summary === undefined) {
    return `${what}: ended before the tests did (${ended.signal ?? `exit code ${ended.code}`})`;
  }
  if (ended.code === 0 && summary.success) return undefined;
  const lines = events.filter((event) => event.kind === "warning").map((event) => event.text);
  if (summary.failed === 0) lines.unshift(`${what}: ended with ${ended.signal ?? `exit code ${ended.code}`}`);
  return lines.length === 0 ? undefined : lines.join("\n");
}

function indent(text: string): string {
  return text.replace(/^/gm, "    ");
}
