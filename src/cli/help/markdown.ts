/** Renders Markdown for a terminal. */
import { stripVTControlCharacters } from "node:util";
import { paint, wrapText } from "../terminal.ts";
import { codeSpanText, type MarkdownBlock, parseMarkdown } from "./markdown-blocks.ts";

/**
 * Headings and bold words stand out, code is indented, paragraphs are wrapped, and Markdown's own marks are removed.
 * @param width columns of the terminal
 */
export function renderMarkdown(page: string, colour: boolean, width: number): string {
  return `${renderBlocks(parseMarkdown(page), colour, width).join("\n")}\n`;
}

function renderBlocks(blocks: readonly MarkdownBlock[], colour: boolean, width: number): string[] {
  const lines: string[] = [];
  let previous: MarkdownBlock["kind"] | undefined;
  for (const block of blocks) {
    // List items stand close together.
    if (previous !== undefined && !(previous === "item" && block.kind === "item")) lines.push("");
    lines.push(...renderBlock(block, colour, width));
    previous = block.kind;
  }
  return lines;
}

function renderBlock(block: MarkdownBlock, colour: boolean, width: number): string[] {
  switch (block.kind) {
    case "heading": {
      const title = inline(block.text, false);
      return [colour ? paint(title, "bold") : title];
    }
    case "code":
      return block.lines.map((line) => (line === "" ? "" : `    ${line}`));
    case "paragraph":
      return wrapText(inline(block.text, colour), width);
    case "item": {
      const mark = /\d/.test(block.mark) ? `${block.mark} ` : "- ";
      const inner = renderBlocks(block.blocks, colour, width - mark.length);
      return inner.map((line, index) =>
        index === 0 ? `${mark}${line}` : line === "" ? "" : `${" ".repeat(mark.length)}${line}`,
      );
    }
    case "table":
      return renderTable(block, colour, width);
  }
}

/** In columns if they fit, else each row as a term with its text below. */
function renderTable(
  { header, rows }: { header: readonly string[]; rows: readonly (readonly string[])[] },
  colour: boolean,
  width: number,
): string[] {
  const titles = header.map((title) => inline(title, false));
  const table = rows.map((row) => row.map((cell) => inline(cell, colour)));
  const widths = titles.map((title, column) =>
    Math.max(title.length, ...table.map((row) => visibleLength(row[column] ?? ""))),
  );
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell + " ".repeat(Math.max(0, (widths[column] ?? 0) - visibleLength(cell))))
      .join("  ")
      .trimEnd();
  const hasTitles = titles.some((title) => title !== "");
  if (widths.reduce((sum, each) => sum + each + 2, -2) <= width) {
    const head = titles.map((title) => (colour && title !== "" ? paint(title, "bold") : title));
    return [...(hasTitles ? [line(head)] : []), ...table.map(line)];
  }
  const [first = "", ...others] = titles;
  const named = others.filter((title) => title !== "").join("; ");
  const heading = first === "" ? [] : [named === "" ? first : `${first}: ${named}`, ""];
  const below = table.flatMap(([term = "", ...others], index) => [
    ...(index === 0 ? [] : [""]),
    ...wrapText(term, width),
    ...others.flatMap((cell, column) => {
      if (cell === "") return [];
      const title = titles[column + 1] ?? "";
      const text = others.length > 1 && title !== "" ? `${title}: ${cell}` : cell;
      return wrapText(text, width - 4).map((each) => `    ${each}`);
    }),
  ]);
  return [...heading, ...below];
}

function visibleLength(text: string): number {
  return stripVTControlCharacters(text).length;
}

function inline(text: string, colour: boolean): string {
  return text
    .split(/(``.+?``(?!`)|`[^`]+`)/)
    .map((part) => {
      const code = codeSpanText(part);
      if (code !== undefined) return colour ? paint(code, "cyan") : code;
      return part
        .replaceAll(/!?\[([^\]]*)\]\((https?:[^)]+)\)/g, "$1 ($2)")
        .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
        .replaceAll(/\*\*([^*]+)\*\*/g, (_, words: string) => (colour ? paint(words, "bold") : words))
        .replaceAll(/(?<![\w*])\*([^*\s][^*]*)\*/g, "$1");
    })
    .join("");
}
