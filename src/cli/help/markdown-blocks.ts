/**
 * Parses Markdown into blocks: only the few forms that the pages of this project use. Terminal output and manual pages are made
 * from them.
 */

export type MarkdownBlock =
  | { readonly kind: "heading"; readonly level: number; readonly text: string }
  | { readonly kind: "code"; readonly lines: readonly string[] }
  /** Lines of a paragraph, joined. */
  | { readonly kind: "paragraph"; readonly text: string }
  /** One item of a list. */
  | { readonly kind: "item"; readonly mark: string; readonly blocks: readonly MarkdownBlock[] }
  | {
      readonly kind: "table";
      readonly header: readonly string[];
      readonly rows: readonly (readonly string[])[];
    };

export function parseMarkdown(page: string): MarkdownBlock[] {
  return parseLines(page.replaceAll(/^<!--.*-->$/gm, "").split("\n"));
}

function parseLines(lines: readonly string[]): MarkdownBlock[] {
  const blocks: MarkdownBlock[] = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] ?? "";
    const fence = /^( *)```/.exec(line);
    const heading = /^(#{1,6}) (.*)$/.exec(line);
    const item = ITEM.exec(line);
    let end = at + 1;
    if (line.trim() === "") {
      at++;
      continue;
    }
    if (fence !== null) {
      while (end < lines.length && !/^ *`{3,}\s*$/.test(lines[end] ?? "")) end++;
      const indent = fence[1]?.length ?? 0;
      const code = lines.slice(at + 1, end).map((text) => text.slice(Math.min(indent, leading(text))));
      blocks.push({ kind: "code", lines: code });
      end++;
    } else if (heading !== null) {
      blocks.push({ kind: "heading", level: heading[1]?.length ?? 1, text: heading[2] ?? "" });
    } else if (item !== null) {
      const indent = leading(line);
      while (end < lines.length && belongsTo(lines, end, indent)) end++;
      const width = item[0].length;
      const behind = lines.slice(at + 1, end).map((text) => text.slice(Math.min(width, leading(text))));
      blocks.push({
        kind: "item",
        mark: item[1] ?? "",
        blocks: parseLines([line.slice(width), ...behind]),
      });
    } else if (line.trimStart().startsWith("|")) {
      while (end < lines.length && (lines[end] ?? "").trimStart().startsWith("|")) end++;
      const [header = [], , ...rows] = lines.slice(at, end).map(cells);
      blocks.push({ kind: "table", header, rows });
    } else {
      while (end < lines.length && !startsBlock(lines[end] ?? "")) end++;
      const text = lines.slice(at, end).map((each) => each.replace(/^> ?/, "").trim());
      blocks.push({ kind: "paragraph", text: text.join(" ") });
    }
    at = end;
  }
  return blocks;
}

const ITEM = /^ *([-*]|\d+\.) +/;

function startsBlock(line: string): boolean {
  return (
    line.trim() === "" ||
    /^ *```/.test(line) ||
    /^#{1,6} /.test(line) ||
    ITEM.test(line) ||
    /^ *\|/.test(line)
  );
}

/** Whether a line continues a list item with this indentation. */
function belongsTo(lines: readonly string[], at: number, indent: number): boolean {
  const line = lines[at] ?? "";
  if (line.trim() !== "") return leading(line) > indent || !startsBlock(line);
  const next = lines.slice(at).find((other) => other.trim() !== "");
  return next !== undefined && leading(next) > indent;
}

function leading(line: string): number {
  return line.length - line.trimStart().length;
}

function cells(line: string): string[] {
  const inner = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.replaceAll("\\|", "|").trim());
}

/** @returns the content of a code span; two backticks around it allow single ones inside. Undefined for other text */
export function codeSpanText(text: string): string | undefined {
  return /^``(.+)``$/.exec(text)?.[1] ?? /^`([^`]+)`$/.exec(text)?.[1];
}
