/** Formats a Corefile: one directive per line, four spaces per level, comments kept. */
import { type Comment, lex, type SourceToken } from "./tokens.ts";

/**
 * Formats a Corefile without changing its meaning. Formatting twice is the same as once.
 * Lines stay lines, but text after an opening brace, and every closing brace, moves to a line of its own. Runs of blank lines
 * become one. A text with unmatched braces or quotes is returned unchanged: there the indentation is the only trace of the author's
 * intent.
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

/** Deeper blocks are indented no further, or the output for a text of braces alone would grow quadratically. */
const MAX_INDENT_LEVEL = 64;

class Printer {
  readonly #source: string;
  readonly #lines: string[] = [];
  #line: string | undefined;
  /** Whether the line ends in an opening brace, apart from a comment. */
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
    // Within quotes every character counts. Other words are written as the lexer normalized them.
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
    // The first byte-order mark of a file is ignored, so a second one is needed to keep the mark of a word.
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
