import { escapeControls } from "../../lib/logging/log.ts";
import { countOf } from "../../lib/text/count-of.ts";
import { paint } from "../terminal.ts";
import type { Comparison, DifferenceKind } from "./comparison.ts";

/** Lines of an example; answers can have hundreds of records. */
const MOST_LINES = 12;

export function reportText(comparison: Comparison, colour: boolean): string {
  const { questions, queries, same, different, changing, kinds } = comparison;
  const asked = queries > questions ? ` (${countOf(queries, "query", "queries")})` : "";
  const more = changing > 0 ? `, ${changing} with answers that change from query to query` : "";
  const head = `${countOf(questions, "question")}${asked}: ${same} same, ${different} different${more}`;
  return `${[head, ...kinds.map((kind) => `\n${kindText(kind, colour)}`)].join("\n")}\n`;
}

function kindText({ kind, listed, questions, queries, examples }: DifferenceKind, colour: boolean): string {
  const asked = queries > questions ? ` (${countOf(queries, "query", "queries")})` : "";
  const title = `${countOf(questions, "question")}${asked}: ${kind}`;
  const lines = [colour ? paint(title, listed === undefined ? "red" : "yellow") : title];
  if (listed !== undefined) lines.push(`  listed in compatibility.md: ${listed}`);
  for (const example of examples) {
    lines.push(`  ${example.question}`);
    lines.push(...example.lines.slice(0, MOST_LINES).map((line) => `    ${line}`));
    if (example.lines.length > MOST_LINES) lines.push(`    … ${example.lines.length - MOST_LINES} more`);
  }
  if (questions > examples.length)
    lines.push(`  … ${countOf(questions - examples.length, "more question", "more questions")}`);
  return lines.map(escapeControls).join("\n");
}
