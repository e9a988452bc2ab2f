import { openSync, writeSync } from "node:fs";
import { relative } from "node:path";
import type { TestEvent } from "node:test/reporters";
import { inspect } from "node:util";
import { stillOpen, unheardConnections } from "./lib/opened.mjs";
import { ENDING_TIME_VARIABLE, EVENTS_FILE_VARIABLE, type TestEventLine } from "./lib/test-events.ts";

/**
 * A reporter for `node --test --test-isolation=none`: writes TestEventLines to a file, at once, so that they are
 * there even if the process crashes.
 *
 * The runner waits for as long as a test left a server or timer open. This reporter ends the process instead.
 */
// oxlint-disable-next-line require-yield -- what a reporter yields goes to its destination; this one writes a file
export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<never> {
  const file = openSync(process.env[EVENTS_FILE_VARIABLE] ?? "/dev/null", "a");
  const endingTime = Number(process.env[ENDING_TIME_VARIABLE] ?? 10_000);
  const write = (line: TestEventLine) => writeSync(file, `${JSON.stringify(line)}\n`);
  const unfinished = new Set<number>();
  const path: string[] = [];
  let ending: NodeJS.Timeout | undefined;

  for await (const event of source) {
    clearTimeout(ending);
    switch (event.type) {
      case "test:enqueue":
        unfinished.add(idOf(event));
        break;
      case "test:complete":
        unfinished.delete(idOf(event));
        break;
      case "test:start":
        path.splice(event.data.nesting, path.length, event.data.name);
        break;
      case "test:pass":
        if (event.data.details.type !== "suite") write(passLine(event.data, path));
        break;
      case "test:fail":
        if (isOwnFailure(event.data)) write(failLine(event.data, path));
        break;
      case "test:diagnostic":
        if (/^(Error|Warning): /.test(event.data.message))
          write({ kind: "warning", text: event.data.message });
        break;
      case "test:summary":
        for (const text of unheardConnections()) write({ kind: "careless", text });
        write(summaryLine(event.data));
        break;
    }
    if (unfinished.size > 0 || event.type === "test:summary") continue;
    ending = setTimeout(() => {
      write({ kind: "left-open", resources: [...process.getActiveResourcesInfo(), ...stillOpen()] });
      process.kill(process.pid, "SIGKILL");
    }, endingTime).unref();
  }
}

type Passed = Extract<TestEvent, { type: "test:pass" }>["data"];
type Failed = Extract<TestEvent, { type: "test:fail" }>["data"];
type Summary = Extract<TestEvent, { type: "test:summary" }>["data"];

function idOf(event: TestEvent): number {
  const { data } = event;
  return data !== undefined && "testId" in data && typeof data.testId === "number" ? data.testId : -1;
}

function passLine(data: Passed, path: readonly string[]): TestEventLine {
  const { skip, todo } = data;
  const reason = skip ?? (todo === undefined ? undefined : `to do: ${todo}`);
  if (reason === undefined) return { kind: "passed" };
  return { kind: "skipped", ...nameOf(data, path), reason: typeof reason === "string" ? reason : "" };
}

function nameOf(data: Passed | Failed, path: readonly string[]): { place: string; name: string } {
  return {
    place: `${relative(process.cwd(), data.file ?? "")}:${data.line ?? 1}`,
    name: [...path.slice(0, data.nesting), data.name].join(" > "),
  };
}

/** A suite also fails because of a test in it, and a test that is still to be done may fail. */
function isOwnFailure({ details, todo }: Failed): boolean {
  const type = "failureType" in details.error ? details.error.failureType : undefined;
  return type !== "subtestsFailed" && todo === undefined;
}

function failLine(data: Failed, path: readonly string[]): TestEventLine {
  return {
    kind: "failed",
    ...nameOf(data, path),
    counted: data.details.type !== "suite",
    error: errorText(data.details.error.cause ?? data.details.error),
  };
}

function summaryLine({ counts, success }: Summary): TestEventLine {
  return {
    kind: "summary",
    success,
    passed: counts.passed,
    failed: counts.tests - counts.passed - counts.skipped - counts.todo,
    skipped: counts.skipped + counts.todo,
  };
}

/** The stack without Node's own frames. An AssertionError has in its message what its fields would repeat. */
function errorText(error: unknown): string {
  const isAssertion = error instanceof Error && error.name === "AssertionError";
  const text = isAssertion ? (error.stack ?? error.message) : inspect(error);
  const lines = text.split("\n").filter((line) => !/^\s+at .*\bnode:/.test(line));
  return lines.slice(0, 60).join("\n");
}
