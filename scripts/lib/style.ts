/** The worst habits of our prose, found by pattern. docs/contributing/style.md has the rules that they break. */
import { parseSync, Visitor } from "rolldown/utils";
import type { Violation } from "./floors.ts";

interface Habit {
  readonly pattern: RegExp;
  readonly instead: string;
}

/** Beginning of a text or of a sentence in it. */
const HEAD = String.raw`(?:^[\s*/"'-]*|[.:;]\s[\s*]*)`;

const HABITS: readonly Habit[] = [
  {
    pattern: /\b(?:for|to|of|by|with|from|at|behind|beside|than) who(?:ever)?\b/,
    instead: 'name the actor: "the caller", "a plugin that"',
  },
  { pattern: new RegExp(String.raw`${HEAD}Who(?:ever)?\s[^?]*$`), instead: "name the actor" },
  { pattern: new RegExp(`${HEAD}Has (?:it|what|the|a|an|all|its|them)\\b`), instead: "begin with a verb" },
  { pattern: /\bat the (?:most|least)\b/, instead: '"at most", "at least"' },
  { pattern: /\bto be had\b/, instead: '"available"' },
  {
    pattern: /(?<!\bthere )\b(?:is|are|was|were|be|been) none\b(?! of\b)/,
    instead: '"not a", "no", "invalid"',
  },
  {
    pattern: /\b(?:some|no|any)body(?:'s)?\b(?!\.invalid)/i,
    instead: '"a caller", "no client", "another thread"',
  },
  { pattern: /\ball the same(?=[.,:;)"]|$)/, instead: '"still", or say what happens' },
  { pattern: /\bcan not\b(?! (?:be (?:zero or )?negative|sign any of the zones))/, instead: '"cannot"' },
];

/** Each habit in the comments, texts and templates of a source, or in the lines of a page outside of its code. */
export function checkStyle(path: string, text: string): Violation[] {
  const pieces = path.endsWith(".md") ? pageLines(text) : sourceProse(path, text);
  return pieces.flatMap(({ line, prose }) =>
    HABITS.flatMap(({ pattern, instead }) => {
      const [found] = pattern.exec(prose) ?? [];
      return found === undefined
        ? []
        : [{ path, line, message: `"${found.replace(/^[^\w]+/, "").trim()}": ${instead}` }];
    }),
  );
}

interface Piece {
  readonly line: number;
  readonly prose: string;
}

function pageLines(text: string): Piece[] {
  let isFenced = false;
  return text.split("\n").flatMap((prose, index) => {
    if (/^\s*(?:```|~~~)/.test(prose)) isFenced = !isFenced;
    return isFenced ? [] : [{ line: index + 1, prose: prose.replaceAll(/`[^`]*`/g, "``") }];
  });
}

/** Line by line, so that a place can be found. A sentence that a line breaks is still read by its halves. */
function sourceProse(path: string, source: string): Piece[] {
  const { program, comments } = parseSync(path, source);
  const pieces: { readonly start: number; readonly text: string }[] = comments.map(({ start, value }) => ({
    start,
    text: value,
  }));
  const visitor = new Visitor({
    Literal({ value, start }) {
      if (typeof value === "string" && value.includes(" ")) pieces.push({ start, text: value });
    },
    TemplateElement({ value, start }) {
      pieces.push({ start, text: value.raw });
    },
    JSXText({ value, start }) {
      pieces.push({ start, text: value });
    },
  });
  visitor.visit(program);
  const inOrder = pieces.toSorted((a, b) => a.start - b.start);
  return inOrder.flatMap(({ start, text }) => {
    const first = source.slice(0, start).split("\n").length;
    return text.split("\n").map((prose, index) => ({ line: first + index, prose }));
  });
}
