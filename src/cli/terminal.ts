/** Output for people: colours, and lines that fit. */
import { stripVTControlCharacters } from "node:util";

/** Whether to colour the output: only on terminals, and not for users who opt out (no-color.org). */
export function wantsColour(stream: { readonly isTTY?: boolean }, environment: NodeJS.ProcessEnv): boolean {
  if ((environment.NO_COLOR ?? "") !== "" || environment.TERM === "dumb") return false;
  return stream.isTTY === true;
}

export type Colour = "red" | "yellow" | "cyan" | "bold";

const CODES: Readonly<Record<Colour, readonly [number, number]>> = {
  red: [31, 39],
  yellow: [33, 39],
  cyan: [36, 39],
  bold: [1, 22],
};

export function paint(text: string, colour: Colour): string {
  const [on, off] = CODES[colour];
  return `\u001b[${on}m${text}\u001b[${off}m`;
}

/** Width of prose if the terminal's width is unknown. */
const USUAL_WIDTH = 80;
/** Longer lines are hard to read. */
const MOST_WIDTH = 120;

/** Columns to use for a page for people. */
export function terminalWidth(
  stream: { readonly columns?: number } = process.stdout,
  environment: NodeJS.ProcessEnv = process.env,
): number {
  const told = stream.columns ?? Number.parseInt(environment.COLUMNS ?? "", 10);
  return told >= 20 ? Math.min(told, MOST_WIDTH) : USUAL_WIDTH;
}

/** Lines of at most `width` columns, broken between words; colours take no room. */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  let length = 0;
  for (const word of text.split(/ +/)) {
    const wide = stripVTControlCharacters(word).length;
    if (line !== "" && length + 1 + wide > width) {
      lines.push(line);
      line = "";
      length = 0;
    }
    length += wide + (line === "" ? 0 : 1);
    line = line === "" ? word : `${line} ${word}`;
  }
  lines.push(line);
  return lines;
}

/**
 * Breaks lines that are too long. The rest goes below the second column of a line that has two (`  -flag VALUE   what it does`),
 * else below its first word.
 */
export function fitted(text: string, width: number = terminalWidth()): string {
  return text
    .split("\n")
    .map((line) => {
      if (line.length <= width) return line;
      const [, columns = ""] = /^(\s*\S.*?\s{2,})\S/.exec(line) ?? [];
      const [margin = ""] = /^\s*/.exec(line) ?? [];
      const first = columns.length <= width / 2 ? columns : "";
      const indent = " ".repeat(first === "" ? margin.length : first.length);
      const rest = line.slice(first === "" ? margin.length : first.length);
      const lines = wrapText(rest, width - indent.length);
      return lines.map((each, index) => `${index === 0 && first !== "" ? first : indent}${each}`).join("\n");
    })
    .join("\n");
}
