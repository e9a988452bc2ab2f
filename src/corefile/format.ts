/** Lays out a Corefile: one directive a line, four spaces a level, comments kept. */
import { type Comment, lex, type SourceToken } from "./tokens.ts";

/**
 * Formats a Corefile without a change to what it says. Formatting twice is the same as once.
 *
 * Lines stay lines, but what follows an opening brace, and every closing brace, moves to a line of its own. Runs of
 * blank lines become one. A text whose braces or quotes do not match is handed back as it is: there the indentation is
 * the only trace of what was meant.
 */
export function formatCorefile(text: string): string {
  const { tokens, comments, unterminated } = lex(text, "");
  if (unterminated !== undefined || !isBalanced(tokens)) return text;
  const printer = new Printer(text);
  let comment = 0;
  for (const token of tokens) {
    for (
      let next = comments[comment];
      next !== undefined && next.start < token.start;
      next = comments[++comment]
    ) {
      printer.printComment(next);
    }
    printer.printToken(token);
  }
  for (const rest of comments.slice(comment)) printer.printComment(rest);
  return printer.finish();
}

const INDENT = "    ";

/** Deeper blocks are indented no further, or a text of braces alone would grow with the square of its length. */
const MAX_INDENT_LEVEL = 64;

class Printer {
  readonly #source: string;
  readonly #lines: string[] = [];
  #line: string | undefined;
  /** Whether the line, a comment aside, ends in an opening brace. */
  #lineOpensBlock = false;
  #level = 0;
  #last: SourceToken["kind"] | "comment" | undefined;
  /** Line of the source on which the last item ends. */
  #lastSourceLine = 0;

  constructor(source: string) {
    this.#source = source;
  }

  printToken(token: SourceToken): void {
    const { kind } = token;
    if (kind === "closing-brace") this.#level--;
    const needsLine =
      token.startsLine ||
      kind === "closing-brace" ||
      this.#last === "opening-brace" ||
      this.#last === "closing-brace" ||
      this.#last === "comment";
    const source = this.#source.slice(token.start, token.end);
    // Within quotes every character counts, and those of a word are what the lexer made of them.
    const text = token.quoted ? source : token.text;
    if (needsLine || this.#line === undefined)
      this.#startLine(text, token.span.line, kind === "closing-brace");
    else this.#line += ` ${text}`;
    if (kind === "opening-brace") this.#level++;
    this.#lineOpensBlock = kind === "opening-brace";
    this.#last = kind;
    this.#lastSourceLine = token.span.line + source.split("\n").length - 1;
  }

  printComment(comment: Comment): void {
    const text = comment.text.trimEnd();
    if (this.#line !== undefined && comment.line === this.#lastSourceLine) this.#line += ` ${text}`;
    else this.#startLine(text, comment.line, false);
    this.#last = "comment";
    this.#lastSourceLine = comment.line;
  }

  finish(): string {
    this.#endLine();
    if (this.#lines.length === 0) return "";
    const text = `${this.#lines.join("\n")}\n`;
    // At the start of a file the first of two byte-order marks counts for nothing, and so keeps the one of a word.
    return text.startsWith("\ufeff") ? `\ufeff${text}` : text;
  }

  #startLine(text: string, sourceLine: number, closes: boolean): void {
    const isFirst = this.#line === undefined || this.#lineOpensBlock;
    this.#endLine();
    if (sourceLine > this.#lastSourceLine + 1 && !isFirst && !closes) this.#lines.push("");
    this.#lineOpensBlock = false;
    this.#line = `${INDENT.repeat(Math.min(this.#level, MAX_INDENT_LEVEL))}${text}`;
  }

  #endLine(): void {
    if (this.#line !== undefined) this.#lines.push(this.#line);
  }
}

function isBalanced(tokens: readonly SourceToken[]): boolean {
  let depth = 0;
  for (const { kind } of tokens) {
    if (kind === "opening-brace") depth++;
    else if (kind === "closing-brace" && --depth < 0) return false;
  }
  return depth === 0;
}
