/**
 * Manual pages from the Markdown of this project. A general converter would bring a parser for all of Markdown, and
 * takes the first heading for a name without summary, which `man -k` cannot find. Our pages have few forms, and each
 * is handled here.
 */
import { codeSpanText, type MarkdownBlock, parseMarkdown } from "../../src/cli/help/markdown-blocks.ts";

export interface ManPage {
  /** `portolan-cache`. */
  readonly name: string;
  readonly section: 1 | 5 | 7;
  /** One sentence without its dot, for `man -k`. */
  readonly summary: string;
  /** Markdown of the sections, headings from `##` on. */
  readonly body: string;
  readonly version: string;
  /** `2026-01-31`. */
  readonly date: string;
}

export function manPage({ name, section, summary, body, version, date }: ManPage): string {
  const lines = [
    `.TH "${name.toUpperCase()}" "${section}" "${date}" "Portolan ${version}" "Portolan"`,
    ".SH NAME",
    `${escapeCode(name)} \\- ${escapeText(summary)}`,
    ...convert(parseMarkdown(body)),
  ];
  const kept = lines.filter((line, index) => {
    // A heading begins a paragraph already.
    return line !== "" && !(line === ".PP" && /^\.S[HS] /.test(lines[index - 1] ?? ""));
  });
  return `${kept.join("\n")}\n`;
}

/** A page of the project: the text behind its first heading, parted into first sentence and the rest. */
export function splitPage(text: string): {
  readonly title: string;
  readonly summary: string;
  readonly rest: string;
} {
  const [, title = "", rest = ""] = /^# (.*)\n+([\s\S]*)$/.exec(text) ?? [];
  const [, paragraph = "", behind = ""] = /^([\s\S]*?)\n\n([\s\S]*)$/.exec(rest) ?? [];
  const flat = paragraph.replaceAll("\n", " ");
  const [, sentence = flat] = /^(.*?[^.])\.( |$)/.exec(flat) ?? [];
  const others = flat.slice(sentence.length + 1).trim();
  return { title, summary: sentence, rest: others === "" ? behind : `${others}\n\n${behind}` };
}

function convert(blocks: readonly MarkdownBlock[]): string[] {
  return blocks.flatMap(convertBlock);
}

function convertBlock(block: MarkdownBlock): string[] {
  switch (block.kind) {
    case "heading":
      return [
        block.level <= 2 ? `.SH ${escapeText(plain(block.text).toUpperCase())}` : `.SS ${inline(block.text)}`,
      ];
    case "code":
      return code(block.lines);
    case "paragraph":
      return [".PP", ...wrapped(inline(block.text))];
    case "item":
      return item(block.mark, block.blocks);
    case "table":
      return table(block.header, block.rows);
  }
}

function item(mark: string, blocks: readonly MarkdownBlock[]): string[] {
  const [first = "", ...rest] = convert(blocks);
  // What follows the first paragraph of an item stands below it.
  const next = rest.findIndex((text) => /^\.(PP|IP|RS|TP)/.test(text));
  const own = next === -1 ? rest : rest.slice(0, next);
  return [
    `.IP "${/\d/.test(mark) ? mark : "\\(bu"}" 4`,
    ...(first === ".PP" ? [] : [first]),
    ...own,
    ...(next === -1 ? [] : [".RS 4", ...rest.slice(next), ".RE"]),
  ];
}

function code(lines: readonly string[]): string[] {
  const text = lines.map((line) => (line === "" ? "\\&" : `\\&${escapeCode(line)}`));
  return [".PP", ".RS 4", ".nf", ...text, ".fi", ".RE"];
}

/** The first cell of a row is a term; the others follow, with the titles of their columns where there is more than one. */
function table(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const [first = "", ...titles] = header;
  const named = titles.flatMap((title) => (title === "" ? [] : [`*${title}*`])).join("; ");
  return [
    ...(first === "" ? [] : [".TP", inline(`*${first}*`), inline(named) || "\\&"]),
    ...rows.flatMap(([term = "", ...others]) => {
      const told = others.flatMap((cell, index) => {
        const title = titles[index] ?? "";
        if (cell === "") return [];
        return [others.length > 1 && title !== "" ? `${title}: ${cell}` : cell];
      });
      return [".TP", inline(term) || "\\&", ...wrapped(inline(told.join("; ")) || "\\&")];
    }),
  ];
}

function inline(text: string): string {
  const parts = text.split(
    /(``.+?``(?!`)|`[^`]+`|\*\*[^*]+\*\*|(?<![\w*])\*[^*\s][^*]*\*|!?\[[^\]]*\]\([^)]*\))/,
  );
  return parts
    .map((part) => {
      const link = /^!?\[([^\]]*)\]\(([^)]*)\)$/.exec(part);
      if (link !== null) {
        const [, words = "", target = ""] = link;
        return /^https?:/.test(target) ? `${inline(words)} (${escapeCode(target)})` : inline(words);
      }
      const code = codeSpanText(part);
      if (code !== undefined) return `\\fB${escapeCode(code)}\\fR`;
      if (/^\*\*.+\*\*$/.test(part)) return `\\fI${escapeText(plain(part.slice(2, -2)))}\\fR`;
      if (/^\*.+\*$/.test(part)) return `\\fI${escapeText(part.slice(1, -1))}\\fR`;
      return escapeText(part);
    })
    .join("");
}

function plain(text: string): string {
  return text.replaceAll(/[`*]/g, "").replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1");
}

/** Lines of a width that other tools can show; none may begin as a request of roff does. */
function wrapped(text: string): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ").filter((each) => each !== "")) {
    if (line !== "" && line.length + word.length >= 78) {
      lines.push(line);
      line = "";
    }
    line = line === "" ? word : `${line} ${word}`;
  }
  if (line !== "") lines.push(line);
  return lines.map((each) => (/^[.']/.test(each) ? `\\&${each}` : each));
}

/** Words as they are meant to be typed or copied: roff would make typographic signs of some ASCII characters. */
function escapeCode(text: string): string {
  return escapeText(text).replaceAll("-", "\\-");
}

const ESCAPES: Readonly<Record<string, string>> = {
  "\\": "\\e",
  "'": "\\(aq",
  "`": "\\(ga",
  "^": "\\(ha",
  "~": "\\(ti",
  '"': "\\(dq",
};

function escapeText(text: string): string {
  return text
    .replaceAll(/[\\'`^~"]/g, (character) => ESCAPES[character] ?? character)
    .replaceAll("\u00a0", "\\~");
}
