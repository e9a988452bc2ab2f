/** The words of a Corefile (docs/spec/coredns-behaviour.md#words). */
import type { Span } from "./diagnostic.ts";

/** A brace only has a meaning as a separate, unquoted word. */
export type TokenKind = "word" | "opening-brace" | "closing-brace";

export interface Token {
  readonly kind: TokenKind;
  /** The value: quotes removed, environment and import arguments filled in. */
  readonly text: string;
  /** Like {@link text}, but with references to the environment as written. */
  readonly raw: string;
  readonly quoted: boolean;
  /** Whether a line break, or the border of an imported text, separates this token from the previous one. */
  readonly startsLine: boolean;
  /** Quotes included. */
  readonly span: Span;
}

/** A token with its part of the file's text: `[start, end)` in UTF-16 code units. */
export interface SourceToken extends Token {
  readonly start: number;
  readonly end: number;
}

export interface Comment {
  /** From the `#` to the end of the line, carriage returns removed. */
  readonly text: string;
  /** From 1. */
  readonly line: number;
  readonly start: number;
}

export interface Lexed {
  readonly tokens: readonly SourceToken[];
  readonly comments: readonly Comment[];
  /** The last token, if its closing quote is missing. */
  readonly unterminated: SourceToken | undefined;
  /** Whether text was left because of the token limit. */
  readonly truncated: boolean;
}

/**
 * Splits a text into tokens. Every text has tokens; nothing is refused here.
 *
 * @param file name for the spans.
 * @param limit maximum number of tokens.
 */
export function lex(text: string, file: string, limit = Number.POSITIVE_INFINITY): Lexed {
  return new Lexer(text, file, limit).run();
}

const TAB = 0x09;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const HASH = 0x23;
const BACKSLASH = 0x5c;
const BYTE_ORDER_MARK = 0xfeff;

class Lexer {
  readonly #text: string;
  readonly #file: string;
  readonly #limit: number;
  readonly #tokens: SourceToken[] = [];
  readonly #comments: Comment[] = [];
  #unterminated: SourceToken | undefined;
  #at = 0;
  #line = 1;
  #lineStart = 0;
  #startsLine = true;

  constructor(text: string, file: string, limit: number) {
    this.#text = text;
    this.#file = file;
    this.#limit = limit;
  }

  run(): Lexed {
    const text = this.#text;
    if (text.charCodeAt(0) === BYTE_ORDER_MARK) {
      this.#at = 1;
      this.#lineStart = 1;
    }
    let truncated = false;
    while (this.#at < text.length) {
      const code = text.charCodeAt(this.#at);
      if (code === LINE_FEED) {
        this.#at++;
        this.#breakLine();
        this.#startsLine = true;
      } else if (code === CARRIAGE_RETURN || isSpace(code)) {
        this.#at++;
      } else if (code === HASH) {
        this.#readComment();
      } else if (this.#tokens.length >= this.#limit) {
        truncated = true;
        break;
      } else if (code === QUOTE) {
        this.#readQuoted();
      } else {
        this.#readWord();
      }
    }
    return { tokens: this.#tokens, comments: this.#comments, unterminated: this.#unterminated, truncated };
  }

  #readWord(): void {
    const text = this.#text;
    const start = this.#at;
    let end = start;
    for (; end < text.length; end++) {
      const code = text.charCodeAt(end);
      if (code === HASH || (code !== CARRIAGE_RETURN && isSpace(code))) break;
    }
    this.#at = end;
    // Carriage returns neither separate words nor belong to them; at the end of a word they are not in its span.
    while (text.charCodeAt(end - 1) === CARRIAGE_RETURN) end--;
    const word = withoutCarriageReturns(text.slice(start, end));
    const kind = word === "{" ? "opening-brace" : word === "}" ? "closing-brace" : "word";
    this.#push(kind, word, false, start, end, this.#line, this.#lineStart);
  }

  #readQuoted(): void {
    const text = this.#text;
    const start = this.#at;
    const line = this.#line;
    const lineStart = this.#lineStart;
    let value = "";
    let copied = start + 1;
    let at = start + 1;
    let closed = false;
    while (at < text.length && !closed) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        closed = true;
        break;
      }
      if (code === BACKSLASH && at + 1 < text.length) {
        const escaped = text.charCodeAt(at + 1);
        if (escaped === QUOTE) {
          value += text.slice(copied, at);
          copied = at + 1;
        }
        if (escaped === QUOTE || escaped === BACKSLASH) {
          at += 2;
          continue;
        }
      }
      at++;
      if (code === LINE_FEED) {
        this.#at = at;
        this.#breakLine();
      }
    }
    value += text.slice(copied, at);
    this.#at = closed ? at + 1 : at;
    const token = this.#push("word", withoutCarriageReturns(value), true, start, this.#at, line, lineStart);
    if (!closed) this.#unterminated = token;
  }

  #readComment(): void {
    const start = this.#at;
    const newline = this.#text.indexOf("\n", start);
    this.#at = newline === -1 ? this.#text.length : newline;
    this.#comments.push({
      text: withoutCarriageReturns(this.#text.slice(start, this.#at)),
      line: this.#line,
      start,
    });
  }

  #push(
    kind: TokenKind,
    text: string,
    quoted: boolean,
    start: number,
    end: number,
    line: number,
    lineStart: number,
  ): SourceToken {
    const span = { file: this.#file, line, column: start - lineStart + 1, length: end - start };
    const token: SourceToken = {
      kind,
      text,
      raw: text,
      quoted,
      startsLine: this.#startsLine,
      span,
      start,
      end,
    };
    this.#tokens.push(token);
    this.#startsLine = false;
    return token;
  }

  /** Counts a line break that ends right before the current position. */
  #breakLine(): void {
    this.#line++;
    this.#lineStart = this.#at;
  }
}

function withoutCarriageReturns(text: string): string {
  return text.includes("\r") ? text.replaceAll("\r", "") : text;
}

/** Unicode's White_Space, as in Go: excludes the byte-order mark, includes NEL. */
function isSpace(code: number): boolean {
  if (code <= SPACE) return code === SPACE || (code >= TAB && code <= CARRIAGE_RETURN);
  if (code < 0x1680) return code === 0x85 || code === 0xa0;
  if (code >= 0x2000 && code <= 0x200a) return true;
  return (
    code === 0x1680 ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0x202f ||
    code === 0x205f ||
    code === 0x3000
  );
}
