import { type Colour, paint } from "../terminal.ts";
import type { ExplainedMessage, Explanation, Step } from "./explanation.ts";
import type { PodSearch } from "./pod-search.ts";

export interface HumanOptions {
  readonly colour: boolean;
}

const WIDTH = 78;
const LABEL = 12;

/** One query: where it came in, what each plugin did with it, what was sent. */
export function formatExplanation(explanation: Explanation, { colour }: HumanOptions): string {
  const { name, type, client, transport, listener, block, steps } = explanation;
  const painted = (text: string, by: Colour): string => (colour ? paint(text, by) : text);
  const lines = [
    `${painted(`${name} ${type}`, "bold")}  asked by ${client} over ${transport.toUpperCase()}`,
    "",
    labelled("listener", listener),
    labelled("block", block ?? "none: no server block of this listener takes the name, so it is refused"),
  ];
  if (steps.length > 0) lines.push("");
  for (const [index, step] of steps.entries()) lines.push(...stepLines(step, index + 1, painted));
  lines.push("", ...messageLines(explanation, painted));
  return `${lines.join("\n")}\n`;
}

/** The attempts of a pod's libc, then each of them in full. */
export function formatPodSearch(search: PodSearch, options: HumanOptions): string {
  const { pod, address, libc, settings, reason, attempts } = search;
  const lines = [
    `pod ${pod}${address === undefined ? "" : ` at ${address}`}, ${libc}`,
    "",
    labelled("search", settings.search.join(" ") || "(none)"),
    labelled("ndots", String(settings.ndots)),
    labelled("order", reason),
    "",
  ];
  for (const [index, { explanation, ending }] of attempts.entries()) {
    const result = `${resultText(explanation.message)}${ending === undefined ? "" : ` (${ending})`}`;
    lines.push(`  ${String(index + 1).padStart(2)}. ${explanation.name}  ${result}`);
  }
  const parts = [`${lines.join("\n")}\n`];
  for (const { explanation } of attempts)
    parts.push(`\n${"-".repeat(WIDTH)}\n\n`, formatExplanation(explanation, options));
  return parts.join("");
}

function labelled(label: string, text: string): string {
  return `  ${label.padEnd(LABEL)} ${text}`;
}

function stepLines(step: Step, number: number, painted: (text: string, by: Colour) => string): string[] {
  const { depth, plugin, decision, notes, milliseconds } = step;
  const indent = "   ".repeat(depth);
  const time = milliseconds === undefined ? "" : formatMilliseconds(milliseconds);
  const start = `  ${indent}${String(number).padStart(2)}  ${plugin.padEnd(LABEL)} ${decision}`;
  const room = Math.max(2, WIDTH - start.length - time.length);
  const shown = /NXDOMAIN|SERVFAIL|REFUSED|drops|broke/.test(decision)
    ? start.replace(decision, painted(decision, "yellow"))
    : start;
  return [
    `${shown}${" ".repeat(room)}${time}`.trimEnd(),
    ...notes.map(({ text }) => `  ${indent}    ${" ".repeat(LABEL)} ${painted("-", "cyan")} ${text}`),
  ];
}

function messageLines(explanation: Explanation, painted: (text: string, by: Colour) => string): string[] {
  const { message, plugin, error, milliseconds } = explanation;
  const took = formatMilliseconds(milliseconds);
  if (message === undefined) return [labelled("answer", `none: the query is dropped, after ${took}`)];
  const { rcode, flags, answer, authority, additional } = message;
  const by = plugin === undefined ? "" : `, from ${plugin}`;
  const head = painted(rcode, rcode === "NOERROR" ? "bold" : "red");
  const lines = [labelled("answer", `${head}${by}, flags ${flags.join(" ") || "none"}, ${took}`)];
  if (error !== undefined) lines.push(labelled("", error));
  for (const [title, records] of Object.entries({ "": answer, authority, additional }))
    lines.push(...records.map((record, index) => labelled(index === 0 ? title : "", record)));
  if (rcode === "NOERROR" && answer.length === 0)
    lines.push(labelled("", "no records: the name exists without such a record (NODATA)"));
  return lines;
}

function resultText(message: ExplainedMessage | undefined): string {
  if (message === undefined) return "no answer";
  const { rcode, answer } = message;
  if (rcode !== "NOERROR") return rcode;
  return answer.length === 0
    ? "NODATA"
    : `NOERROR, ${answer.length} ${answer.length === 1 ? "record" : "records"}`;
}

function formatMilliseconds(milliseconds: number): string {
  return `${milliseconds < 100 ? milliseconds.toFixed(2) : Math.round(milliseconds)} ms`;
}
