/** Markdown for a terminal: the few forms that READMEs of plugins have. */
import { paint } from "../terminal.ts";

/** Headings and bold words stand out, code is indented, marks of Markdown that only say so are taken away. */
export function renderMarkdown(text: string, colour: boolean): string {
  let inCode = false;
  const lines: string[] = [];
  for (const line of text.split("\n")) {
    if (/^```/.test(line)) {
      inCode = !inCode;
      continue;
    }
    if (inCode) lines.push(line === "" ? "" : `    ${line}`);
    else if (!/^\|[-| :]+\|$/.test(line)) lines.push(renderLine(line, colour));
  }
  return lines.join("\n");
}

function renderLine(line: string, colour: boolean): string {
  const heading = /^#+ (.*)$/.exec(line)?.[1];
  if (heading !== undefined) return colour ? paint(heading, "bold") : heading;
  return line
    .replaceAll(/\[([^\]]+)\]\([^)]+\)/g, "$1")
    .replaceAll(/\*\*([^*]+)\*\*/g, (_, word: string) => (colour ? paint(word, "bold") : word))
    .replaceAll(/`([^`]+)`/g, (_, word: string) => (colour ? paint(word, "cyan") : word));
}
