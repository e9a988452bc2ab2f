/** The parts of a Markdown page that can be run or checked. */

export interface FencedBlock {
  /** What stands behind the opening fence: `corefile`, `sh`, `ts`, …; empty where nothing does. */
  readonly language: string;
  /** The lines between the fences, each with its line end. */
  readonly text: string;
  /** Line of the opening fence, from 1. */
  readonly line: number;
  /** The last line of text between the block before and this one. */
  readonly introduction: string;
}

/** The fenced blocks of a page. A block inside of another one is a part of that one's text. */
export function fencedBlocks(page: string): FencedBlock[] {
  const blocks: FencedBlock[] = [];
  let introduction = "";
  let content: string[] = [];
  for (const { text, number, fence } of fencedLines(page)) {
    if (fence === undefined) {
      if (text.trim() !== "") introduction = text.trim();
    } else if (number === fence.line) {
      content = [];
    } else if (fence.closedBy === number) {
      blocks.push({ language: fence.language, text: content.join(""), line: fence.line, introduction });
      introduction = "";
    } else content.push(`${text.startsWith(fence.indent) ? text.slice(fence.indent.length) : text}\n`);
  }
  return blocks;
}

export interface Section {
  readonly title: string;
  /** Everything up to the next heading of the same or a higher level, without blank lines at both ends. */
  readonly text: string;
}

/** The sections under headings of one level, without headings that stand in fenced blocks. */
export function sections(page: string, level: number): Section[] {
  const found: { title: string; lines: string[] }[] = [];
  let current: string[] | undefined;
  for (const { text, fence } of fencedLines(page)) {
    const [, signs, title] = fence === undefined ? (/^(#+) (.*)$/.exec(text) ?? []) : [];
    if (signs === undefined || title === undefined || signs.length > level) {
      current?.push(text);
      continue;
    }
    current = undefined;
    if (signs.length < level) continue;
    current = [];
    found.push({ title, lines: current });
  }
  return found.map(({ title, lines }) => ({ title, text: lines.join("\n").trim() }));
}

/** Targets of links to other files, without the part behind `#`. */
export function localLinks(page: string): string[] {
  const prose = fencedLines(page).flatMap(({ text, fence }) => (fence === undefined ? [text] : []));
  const links = prose.join("\n").replaceAll(/`[^`\n]*`/g, "");
  return Array.from(links.matchAll(/\]\(([^)\s]+)\)/g), ([, target = ""]) => target)
    .filter((target) => !/^([a-z]+:|#)/.test(target))
    .map((target) => target.replace(/#.*$/, ""));
}

interface Fence {
  readonly marks: string;
  readonly indent: string;
  readonly language: string;
  readonly line: number;
  closedBy: number;
}

interface Line {
  readonly text: string;
  /** From 1. */
  readonly number: number;
  /** The block that the line is in, its two fences included. */
  readonly fence: Fence | undefined;
}

/** @throws where the last block has no end */
function fencedLines(page: string): Line[] {
  let open: Fence | undefined;
  const lines = page.split("\n").map((text, index): Line => {
    const number = index + 1;
    if (open !== undefined) {
      const fence = open;
      if (text.trim() === fence.marks) {
        fence.closedBy = number;
        open = undefined;
      }
      return { text, number, fence };
    }
    const [, indent = "", marks, language = ""] = /^( *)(`{3,}) *([^`]*)$/.exec(text) ?? [];
    if (marks !== undefined) open = { marks, indent, language: language.trim(), line: number, closedBy: 0 };
    return { text, number, fence: open };
  });
  if (open !== undefined) throw new Error(`the block of line ${open.line} has no end`);
  return lines;
}
