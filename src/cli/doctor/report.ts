/** Prints the doctor's findings for people. */

import type { Diagnosis } from "../../console/doctor/diagnose.ts";
import type { Finding } from "../../console/doctor/finding.ts";
import { escapeControls } from "../../lib/logging/log.ts";
import { countOf } from "../../lib/text/count-of.ts";
import { type Colour, paint } from "../terminal.ts";

export function reportText({ findings, notExamined, observed }: Diagnosis, colour: boolean): string {
  const shade = (text: string, name: Colour): string => (colour ? paint(text, name) : text);
  const server = observed.server === "" ? "" : ` of ${observed.server}`;
  const lines = [`${countOf(observed.queries, "query", "queries")}${server} in ${observed.seconds} s`, ""];
  for (const [at, finding] of findings.entries()) lines.push(...findingLines(finding, at + 1, shade), "");
  if (notExamined.length > 0) {
    lines.push(shade("not examined", "bold"));
    for (const { code, reason } of notExamined) lines.push(`  ${code}: ${reason}`);
    lines.push("");
  }
  lines.push(
    findings.length === 0
      ? "nothing is wrong with what was examined"
      : shade(countOf(findings.length, "finding"), "bold"),
  );
  return `${lines.map((line) => (colour ? line : escapeControls(line))).join("\n")}\n`;
}

function findingLines(
  { code, title, explanation, causes, remedies }: Finding,
  number: number,
  shade: (text: string, name: Colour) => string,
): string[] {
  const widest = Math.min(48, Math.max(0, ...causes.map(({ who }) => who.length)));
  return [
    `${number}. ${shade(escapeControls(title), "yellow")} ${shade(`[${code}]`, "cyan")}`,
    `   ${escapeControls(explanation)}`,
    ...(causes.length === 0 ? [] : [`   ${shade("who", "bold")}`]),
    ...causes.map(({ who, figure }) => escapeControls(`     ${who.padEnd(widest)}  ${figure}`)),
    `   ${shade("do", "bold")}`,
    ...remedies.flatMap(({ text, patch }) => [
      escapeControls(`     - ${text}`),
      ...(patch ?? "")
        .split("\n")
        .flatMap((line) => (line === "" ? [] : [escapeControls(`         ${line}`)])),
    ]),
  ];
}
