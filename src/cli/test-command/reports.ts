/** The reports of `test`: for people, as TAP (version 14), and as JUnit XML. */
import { type Colour, paint } from "../terminal.ts";
import type { CaseResult, FileResult } from "./run-file.ts";

/** A test file that could not be run, and the reason. */
export interface FileProblem {
  readonly file: string;
  readonly problem: string;
}

export type FileReport = FileResult | FileProblem;

export interface ReportOptions {
  readonly colour: boolean;
}

/** @returns everything to print, line ends included */
export type Report = (files: readonly FileReport[], options: ReportOptions) => string;

export const REPORTS: ReadonlyMap<string, Report> = new Map<string, Report>([
  ["human", reportForPeople],
  ["tap", reportAsTap],
  ["junit", reportAsJunit],
]);

export function hasProblem(report: FileReport): report is FileProblem {
  return "problem" in report;
}

export function hasPassed({ differences }: CaseResult): boolean {
  return differences.length === 0;
}

function reportForPeople(files: readonly FileReport[], { colour }: ReportOptions): string {
  const painted = (text: string, by: Colour): string => (colour ? paint(text, by) : text);
  const lines: string[] = [];
  for (const report of files) {
    if (hasProblem(report)) {
      lines.push(
        `${painted("cannot run", "red")} ${report.file}`,
        ...indented(report.problem.split("\n")),
        "",
      );
      continue;
    }
    lines.push(report.file);
    for (const each of report.cases) {
      if (hasPassed(each)) {
        lines.push(`  ok    ${each.title}`);
        continue;
      }
      lines.push(`  ${painted("FAIL", "red")}  ${each.title} (${report.file}:${each.line})`);
      lines.push(...indented(detailLines(each), "        ").map((line) => paintedDifference(line, painted)));
    }
    lines.push("");
  }
  return `${lines.join("\n")}${summary(files)}\n`;
}

function paintedDifference(line: string, painted: (text: string, by: Colour) => string): string {
  if (/^\s+\+ /.test(line)) return painted(line, "red");
  return /^\s+- /.test(line) ? painted(line, "cyan") : line;
}

/** The question, each difference, and the plugins' notes. */
function detailLines({ question, differences, way }: CaseResult): string[] {
  return [
    `asked    ${question}`,
    ...differences.flatMap(({ subject, lines }) => [subject, ...indented(lines)]),
    ...(way.length === 0 ? [] : ["on the way", ...indented(way)]),
  ];
}

function summary(files: readonly FileReport[]): string {
  const cases = files.flatMap((report) => (hasProblem(report) ? [] : report.cases));
  const passed = cases.filter(hasPassed).length;
  const problems = files.filter(hasProblem).length;
  const parts = [`${passed} passed`];
  if (passed < cases.length) parts.push(`${cases.length - passed} failed`);
  if (problems > 0) parts.push(`${problems} ${problems === 1 ? "file" : "files"} not run`);
  return parts.join(", ");
}

function reportAsTap(files: readonly FileReport[]): string {
  const lines: string[] = [];
  let number = 0;
  for (const report of files) {
    if (hasProblem(report)) {
      lines.push(
        `not ok ${++number} - ${tapText(report.file)}`,
        "  ---",
        ...yamlBlock("problem", report.problem.split("\n")),
        "  ...",
      );
      continue;
    }
    for (const each of report.cases) {
      const passed = hasPassed(each);
      lines.push(`${passed ? "ok" : "not ok"} ${++number} - ${tapText(each.title)}`);
      if (passed) continue;
      lines.push("  ---", `  at: ${JSON.stringify(`${report.file}:${each.line}`)}`);
      lines.push(...yamlBlock("detail", detailLines(each)), "  ...");
    }
  }
  return `${["TAP version 14", `1..${number}`, ...lines].join("\n")}\n`;
}

/** `#` begins a TAP directive, and a description is one line. */
function tapText(text: string): string {
  return text.replace(/\s+/g, " ").replaceAll("\\", "\\\\").replaceAll("#", "\\#");
}

function yamlBlock(key: string, lines: readonly string[]): string[] {
  return [`  ${key}: |`, ...indented(lines, "    ")];
}

function reportAsJunit(files: readonly FileReport[]): string {
  const suites = files.map((report) => {
    if (hasProblem(report)) {
      const body = `    <testcase name="${xml(report.file)}">\n      <error message="cannot run">${xml(report.problem)}</error>\n    </testcase>\n`;
      return suite(report.file, 1, 0, 1, 0, body);
    }
    const failures = report.cases.filter((each) => !hasPassed(each)).length;
    const total = report.cases.reduce((sum, { duration }) => sum + duration, 0);
    const body = report.cases.map((each) => junitCase(report.file, each)).join("");
    return suite(report.file, report.cases.length, failures, 0, total, body);
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${suites.join("")}</testsuites>\n`;
}

function suite(
  file: string,
  tests: number,
  failures: number,
  errors: number,
  duration: number,
  body: string,
): string {
  const counts = `tests="${tests}" failures="${failures}" errors="${errors}" time="${seconds(duration)}"`;
  return `  <testsuite name="${xml(file)}" ${counts}>\n${body}  </testsuite>\n`;
}

function junitCase(file: string, each: CaseResult): string {
  const head = `    <testcase name="${xml(each.title)}" classname="${xml(file)}" file="${xml(file)}" line="${each.line}" time="${seconds(each.duration)}"`;
  if (hasPassed(each)) return `${head}/>\n`;
  const message = each.differences.map(({ subject }) => subject).join(", ");
  return `${head}>\n      <failure message="${xml(`unexpected ${message}`)}">${xml(detailLines(each).join("\n"))}</failure>\n    </testcase>\n`;
}

function seconds(milliseconds: number): string {
  return (milliseconds / 1_000).toFixed(3);
}

/** Replaces characters that XML 1.0 cannot represent. */
function xml(text: string): string {
  return text
    .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "\uFFFD")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

function indented(lines: readonly string[], by = "  "): string[] {
  return lines.map((line) => `${by}${line}`);
}
