/** Finds the probable place of a wrong brace. The parser notices a wrong brace only later, often at the end. */
import { formatPlace, quoteText } from "./diagnostic.ts";
import type { Token } from "./tokens.ts";

export class BraceHints {
  /** Words that contain an unmatched brace. */
  readonly #suspects: Token[] = [];
  #misaligned: string | undefined;

  noteWord(token: Token): void {
    if (this.#suspects.length >= MAX_SUSPECTS || token.quoted || braceBalance(token.raw) === 0) return;
    this.#suspects.push(token);
  }

  /** @param heading first word of the line whose block `brace` closes. */
  noteClosing(brace: Token, heading: Token): void {
    if (this.#misaligned !== undefined || !brace.startsLine || !heading.startsLine) return;
    if (brace.span.file !== heading.span.file || brace.span.importedAt !== heading.span.importedAt) return;
    if (brace.span.column === heading.span.column || brace.span.line === heading.span.line) return;
    this.#misaligned =
      `the brace at ${formatPlace(brace.span)} closes ${quoteText(heading.text)} at ${formatPlace(heading.span)}, ` +
      "although the two are indented differently";
  }

  /** Returns the suspicious places. */
  notes(): string[] {
    const notes = this.#suspects.map(
      (token) =>
        `${quoteText(token.text)} at ${formatPlace(token.span)} is one word: a brace counts only as a separate word`,
    );
    if (this.#misaligned !== undefined) notes.push(this.#misaligned);
    return notes;
  }
}

/** Splits a word such as `example.org{`; `undefined` if no brace is glued to it. */
export function splitGluedBrace(token: Token): { word: Token; brace: Token } | undefined {
  const { raw, text, span } = token;
  if (
    token.kind !== "word" ||
    token.quoted ||
    raw.length < 2 ||
    !raw.endsWith("{") ||
    braceBalance(raw) <= 0
  ) {
    return undefined;
  }
  const bracePlace = { ...span, column: span.column + span.length - 1, length: 1 };
  return {
    word: {
      ...token,
      raw: raw.slice(0, -1),
      text: text.slice(0, -1),
      span: { ...span, length: span.length - 1 },
    },
    brace: { kind: "opening-brace", text: "{", raw: "{", quoted: false, startsLine: false, span: bracePlace },
  };
}

const MAX_SUSPECTS = 3;

function braceBalance(text: string): number {
  let balance = 0;
  for (const character of text) {
    if (character === "{") balance++;
    else if (character === "}") balance--;
  }
  return balance;
}
