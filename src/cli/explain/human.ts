import type { Explanation, Step } from "../../plugin/contract/explanation.ts";
import { type Colour, paint } from "../terminal.ts";
import { digLines } from "./dig-text.ts";
import type { PodSearch } from "./pod-search.ts";

export interface HumanOptions {
  readonly colour: boolean;
}

type Painter = (text: string, by: Colour) => string;

const WIDTH = 78;
const LABEL = 12;

/** One query: the listener, the steps of each plugin, the reply. */
export function formatExplanation(explanation: Explanation, { colour }: HumanOptions): string {
  const painted = painter(colour);
  const { name, type, client, transport } = explanation;
  const heading = `${painted(`${name} ${type}`, "bold")}  asked by ${client} over ${transport.toUpperCase()}`;
  const message = digLines(explanation).map((line) => (line.startsWith(";;") ? painted(line, "cyan") : line));
  return joined([
    heading,
    "",
    ...wayLines(explanation, painted),
    ...(message.length === 0 ? [] : ["", ...message]),
  ]);
}

/** The attempts of a pod's libc, then the trace of each, and the message of the last. */
export function formatPodSearch(search: PodSearch, { colour }: HumanOptions): string {
  const painted = painter(colour);
  const { pod, address, libc, settings, reason, assumed, attempts } = search;
  const lines = [
    `${painted(`pod ${pod}`, "bold")}${address === undefined ? "" : ` at ${address}`}, ${libc}`,
    "",
    labelled("search", settings.search.join(" ") || "(none)"),
    labelled("ndots", String(settings.ndots)),
    labelled("order", reason),
    ...assumed.map((text, index) => labelled(index === 0 ? "assumed" : "", text)),
    "",
  ];
  for (const [index, { explanation, ending }] of attempts.entries()) {
    const result = `${resultText(explanation, painted)}${ending === undefined ? "" : ` (${ending})`}`;
    lines.push(`  ${String(index + 1).padStart(2)}. ${explanation.name}  ${result}`);
  }
  for (const [index, { explanation }] of attempts.entries()) {
    const { name, type, client, transport } = explanation;
    const heading = `${index + 1}. ${painted(`${name} ${type}`, "bold")}`;
    lines.push("", "-".repeat(WIDTH), "");
    lines.push(`${heading}  asked by ${client} over ${transport.toUpperCase()}`, "");
    lines.push(...wayLines(explanation, painted));
  }
  const last = attempts.at(-1);
  const message = last === undefined ? [] : digLines(last.explanation);
  if (message.length > 0)
    lines.push("", ...message.map((line) => (line.startsWith(";;") ? painted(line, "cyan") : line)));
  return joined(lines);
}

function wayLines(explanation: Explanation, painted: Painter): string[] {
  const { server, listener, otherListeners = [], block, view, steps } = explanation;
  const lines: string[] = [];
  if (server !== undefined) lines.push(labelled("server", serverText(server)));
  lines.push(
    labelled("listener", listener),
    ...(otherListeners.length === 0
      ? []
      : [labelled("also on", `${otherListeners.join(", ")} (choose one with -listener)`)]),
    labelled(
      "block",
      block ?? "none: no server block of this listener has the name, so the query is refused",
    ),
  );
  if (view !== undefined) lines.push(labelled("view", view));
  if (steps.length > 0) lines.push("");
  for (const [index, step] of steps.entries()) lines.push(...stepLines(step, index + 1, painted));
  lines.push("", ...resultLines(explanation, painted));
  return lines;
}

function serverText({ version, threads }: NonNullable<Explanation["server"]>): string {
  if (threads === 1) return `${version}, the running server`;
  return `${version}, the running server: the first of ${threads} threads, with its own connections and the shared cache`;
}

function labelled(label: string, text: string): string {
  return `  ${label.padEnd(LABEL)} ${text}`;
}

function stepLines(step: Step, number: number, painted: Painter): string[] {
  const { depth, plugin, decision, asked, notes, milliseconds } = step;
  const indent = "   ".repeat(depth);
  // What follows had no part in the answer.
  if (plugin === "aside") return [`  ${indent}    ${decision}`];
  const time = milliseconds === undefined ? "" : formatMilliseconds(milliseconds);
  const start = `  ${indent}${String(number).padStart(2)}  ${plugin.padEnd(LABEL)} ${decision}`;
  const room = Math.max(2, WIDTH - start.length - time.length);
  const shown = /NXDOMAIN|SERVFAIL|REFUSED|drops|has not/.test(decision)
    ? start.replace(decision, painted(decision, "yellow"))
    : start;
  const texts = notes.map(({ text }) => text);
  if (asked !== undefined) texts.unshift(`asked for ${asked}: an earlier plugin changed the question`);
  return [
    `${shown}${" ".repeat(room)}${time}`.trimEnd(),
    ...texts.map((text) => `  ${indent}    ${" ".repeat(LABEL)} ${painted("-", "cyan")} ${text}`),
  ];
}

function resultLines(explanation: Explanation, painted: Painter): string[] {
  const { message, plugin, error, milliseconds } = explanation;
  const took = formatMilliseconds(milliseconds);
  if (message === undefined)
    return [labelled("answer", error ?? `none: the query is dropped, after ${took}`)];
  const by = plugin === undefined ? "" : `, from ${plugin}`;
  const lines = [labelled("answer", `${resultText(explanation, painted)}${by}, after ${took}`)];
  if (error !== undefined) lines.push(labelled("", error));
  if (message.rcode === "NOERROR" && message.answer.length === 0)
    lines.push(labelled("", "the name exists, but has no such record"));
  return lines;
}

/** `NXDOMAIN`, `NODATA`, `NOERROR, 2 records`. */
function resultText({ message }: Explanation, painted: Painter): string {
  if (message === undefined) return painted("no answer", "red");
  const { rcode, answer } = message;
  if (rcode !== "NOERROR") return painted(rcode, "red");
  if (answer.length === 0) return painted("NODATA", "yellow");
  return `${painted(rcode, "bold")}, ${answer.length} ${answer.length === 1 ? "record" : "records"}`;
}

function formatMilliseconds(milliseconds: number): string {
  return `${milliseconds < 100 ? milliseconds.toFixed(2) : Math.round(milliseconds)} ms`;
}

function painter(colour: boolean): Painter {
  return (text, by) => (colour ? paint(text, by) : text);
}

function joined(lines: readonly string[]): string {
  return `${lines.join("\n")}\n`;
}
