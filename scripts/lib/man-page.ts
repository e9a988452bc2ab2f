/**
 * Manual pages out of the Markdown of this project. A converter of somebody else's would bring a parser for all of Markdown, and takes
 * the first heading for a name without summary, which `man -k` cannot find; our pages have few forms, and each has one here.
 */

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
    ...convert(body.split("\n")),
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

function convert(lines: readonly string[]): string[] {
  const out: string[] = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] ?? "";
    const fence = /^( *)```/.exec(line);
    const heading = /^(#{1,6}) (.*)$/.exec(line);
    const item = ITEM.exec(line);
    if (line.trim() === "") at++;
    else if (fence !== null) {
      const end = lines.findIndex((other, index) => index > at && /^ *````?`?\s*$/.test(other));
      const until = end === -1 ? lines.length : end;
      const indent = fence[1]?.length ?? 0;
      out.push(
        ...code(lines.slice(at + 1, until).map((text) => text.slice(Math.min(indent, leading(text))))),
      );
      at = until + 1;
    } else if (heading !== null) {
      const [, marks = "", title = ""] = heading;
      out.push(marks.length <= 2 ? `.SH ${escapeText(plain(title).toUpperCase())}` : `.SS ${inline(title)}`);
      at++;
    } else if (item !== null) {
      const indent = line.length - line.trimStart().length;
      let end = at + 1;
      while (end < lines.length && belongsTo(lines, end, indent)) end++;
      const width = item[0].length;
      const inner = [
        line.slice(width),
        ...lines.slice(at + 1, end).map((text) => text.slice(Math.min(width, leading(text)))),
      ];
      const mark = /\d/.test(item[1] ?? "") ? (item[1] ?? "") : "\\(bu";
      const [first = "", ...rest] = convert(inner);
      out.push(`.IP "${mark}" 4`, ...(first === ".PP" ? [] : [first]));
      // What follows the first paragraph of an item stands below it.
      const next = rest.findIndex((text) => /^\.(PP|IP|RS|TP)/.test(text));
      const own = next === -1 ? rest : rest.slice(0, next);
      out.push(...own, ...(next === -1 ? [] : [".RS 4", ...rest.slice(next), ".RE"]));
      at = end;
    } else if (line.trimStart().startsWith("|")) {
      let end = at;
      while ((lines[end] ?? "").trimStart().startsWith("|")) end++;
      out.push(...table(lines.slice(at, end)));
      at = end;
    } else {
      let end = at + 1;
      while (end < lines.length && !startsBlock(lines[end] ?? "")) end++;
      const text = lines.slice(at, end).map((each) => each.replace(/^> ?/, "").trim());
      out.push(".PP", ...wrapped(inline(text.join(" "))));
      at = end;
    }
  }
  return out;
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

/** Whether a line goes on with the item of a list that is indented so far. */
function belongsTo(lines: readonly string[], at: number, indent: number): boolean {
  const line = lines[at] ?? "";
  if (line.trim() !== "") return leading(line) > indent || !startsBlock(line);
  const next = lines.slice(at).find((other) => other.trim() !== "");
  return next !== undefined && leading(next) > indent;
}

function leading(line: string): number {
  return line.length - line.trimStart().length;
}

function code(lines: readonly string[]): string[] {
  const text = lines.map((line) => (line === "" ? "\\&" : `\\&${escapeCode(line)}`));
  return [".PP", ".RS 4", ".nf", ...text, ".fi", ".RE"];
}

/** The first cell of a row is a term; the others follow with their headings, where there is more than one. */
function table(lines: readonly string[]): string[] {
  const [header = [], , ...rows] = lines.map(cells);
  return rows.flatMap(([term = "", ...others]) => {
    const named = others.flatMap((cell, index) => {
      const title = header[index + 1] ?? "";
      if (cell === "") return [];
      return [others.length > 1 && title !== "" ? `${title}: ${cell}` : cell];
    });
    return [".TP", inline(term) || "\\&", ...wrapped(inline(named.join("; ")) || "\\&")];
  });
}

function cells(line: string): string[] {
  const inner = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.replaceAll("\\|", "|").trim());
}

function inline(text: string): string {
  const parts = text.split(/(`[^`]+`|\*\*[^*]+\*\*|(?<![\w*])\*[^*\s][^*]*\*|!?\[[^\]]*\]\([^)]*\))/);
  return parts
    .map((part) => {
      const link = /^!?\[([^\]]*)\]\(([^)]*)\)$/.exec(part);
      if (link !== null) {
        const [, words = "", target = ""] = link;
        return /^https?:/.test(target) ? `${inline(words)} (${escapeCode(target)})` : inline(words);
      }
      if (/^`.+`$/.test(part)) return `\\fB${escapeCode(part.slice(1, -1))}\\fR`;
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
