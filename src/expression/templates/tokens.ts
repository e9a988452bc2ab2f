/** The tokens of the template language: text, and the content of actions between braces. */

import { fitsInteger, TextScanner } from "../syntax/text-scanner.ts";
import type { Extent } from "../values/language-error.ts";
import { type ExpressionValue, Float, toInteger } from "../values/values.ts";

export type TemplateTokenKind =
  | "text"
  | "open"
  | "close"
  | "space"
  | "name"
  | "field"
  | "variable"
  | "dot"
  | "constant"
  | "mark"
  | "end";

export interface TemplateToken extends Extent {
  readonly kind: TemplateTokenKind;
  readonly text: string;
  readonly value: ExpressionValue;
}

const NAME = /[\p{L}_][\p{L}\p{Nd}_]*/uy;
const NAMED_BEHIND = /[\p{L}\p{Nd}_]*/uy;

/** May follow a name, a field or a variable. */
const ENDS_WORD = /^(?:$|[\s.,|:()=]|-?\}\})/;

/** @throws LanguageError */
export function tokenize(text: string): TemplateToken[] {
  return new Tokenizer(text).run();
}

class Tokenizer extends TextScanner {
  readonly #tokens: TemplateToken[] = [];

  run(): TemplateToken[] {
    while (!this.isAtEnd) this.#readText();
    this.#push("end", this.at, "");
    return this.#tokens;
  }

  #push(kind: TemplateTokenKind, start: number, text: string, value: ExpressionValue = null): TemplateToken {
    const token = { kind, text, value, start, end: this.at };
    this.#tokens.push(token);
    return token;
  }

  #readText(): void {
    const start = this.at;
    const found = this.text.indexOf("{{", start);
    const end = found < 0 ? this.text.length : found;
    const isTrimmed = found >= 0 && /^\{\{-\s/.test(this.text.slice(found, found + 4));
    const text = this.text.slice(start, end);
    this.at = end;
    const kept = isTrimmed ? text.trimEnd() : text;
    if (kept !== "") this.#push("text", start, kept);
    if (found < 0) return;
    this.at += 2;
    if (isTrimmed) this.takeMatch(/-\s+/y);
    if (this.startsWith("/*")) this.#skipComment();
    else this.#readAction(found);
  }

  #skipComment(): void {
    const end = this.text.indexOf("*/", this.at);
    if (end < 0) this.fail("unclosed comment");
    this.at = end + 2;
    if (!this.#takeClosing()) this.fail("comment ends before closing delimiter");
  }

  /** `}}`, with the space after it if the mark trims. */
  #takeClosing(): boolean {
    if (this.take("}}")) return true;
    if (this.takeMatch(/\s-\}\}/y) === "" && this.takeMatch(/\s+-\}\}/y) === "") return false;
    this.takeMatch(/\s+/y);
    return true;
  }

  #readAction(opened: number): TemplateToken {
    this.#push("open", opened, "{{");
    let brackets = 0;
    for (;;) {
      const start = this.at;
      if (brackets === 0 && this.#takeClosing()) return this.#push("close", start, "}}");
      if (this.isAtEnd) this.fail("unclosed action", opened);
      if (this.startsWith("}}")) this.fail("unclosed left paren");
      const mark = this.peek();
      brackets += mark === "(" ? 1 : mark === ")" ? -1 : 0;
      if (brackets < 0) this.fail("unexpected right paren");
      this.#readWord(start);
    }
  }

  #readWord(start: number): TemplateToken {
    if (this.takeMatch(/\s+/y) !== "") return this.#push("space", start, " ");
    const mark = this.peek();
    if (/[+\-\d]/.test(mark) || (mark === "." && /\d/.test(this.peek(1)))) return this.#readNumber(start);
    if (mark === '"') return this.#readQuoted(start);
    if (mark === "`") return this.#readRaw(start);
    if (mark === "'") return this.#readCharacter(start);
    if (this.take(":=")) return this.#push("mark", start, ":=");
    if (mark === "." || mark === "$") {
      this.at++;
      const name = this.takeMatch(NAMED_BEHIND);
      const kind = mark === "$" ? "variable" : name === "" ? "dot" : "field";
      if (kind !== "dot") this.#endWord();
      return this.#push(kind, start, mark === "$" ? `$${name}` : name);
    }
    const name = this.takeMatch(NAME);
    if (name !== "") {
      this.#endWord();
      return this.#readNamed(start, name);
    }
    if (mark === ":") this.fail("expected :=");
    if (!/[\x21-\x7e]/.test(mark)) this.fail(`unrecognized character in action: ${JSON.stringify(mark)}`);
    this.at++;
    return this.#push("mark", start, mark);
  }

  #readNamed(start: number, name: string): TemplateToken {
    if (name === "true" || name === "false") return this.#push("constant", start, name, name === "true");
    return this.#push("name", start, name);
  }

  #endWord(): void {
    const rest = this.text.slice(this.at, this.at + 3);
    if (!ENDS_WORD.test(rest)) this.fail(`bad character ${JSON.stringify(this.peek())}`);
  }

  #readQuoted(start: number): TemplateToken {
    this.at++;
    const octets = this.readEscaped({ quote: '"', braces: false, codePoints: false }, start);
    return this.#push("constant", start, "", Buffer.from(octets).toString("utf8"));
  }

  #readRaw(start: number): TemplateToken {
    const end = this.text.indexOf("`", start + 1);
    if (end < 0) this.fail("unterminated raw quoted string", start);
    this.at = end + 1;
    return this.#push("constant", start, "", this.text.slice(start + 1, end));
  }

  /** A character in single quotes is its number. */
  #readCharacter(start: number): TemplateToken {
    this.at++;
    const octets = this.readEscaped({ quote: "'", braces: false, codePoints: true }, start);
    const characters = Array.from(Buffer.from(octets).toString("utf8"));
    if (characters.length !== 1) this.fail("malformed character constant", start);
    return this.#push("constant", start, "", characters[0]?.codePointAt(0) ?? 0);
  }

  #readNumber(start: number): TemplateToken {
    const word = this.takeMatch(
      /[+-]?(?:0[xX][\da-fA-F_]*(?:\.[\da-fA-F_]*)?(?:[pP][+-]?[\d_]*)?|0[oO][0-7_]*|0[bB][01_]*|[\d_]*\.?[\d_]*(?:[eE][+-]?[\d_]*)?)/y,
    );
    if (/[\p{L}\p{Nd}_]/u.test(this.peek()))
      this.fail(`bad number syntax: ${JSON.stringify(word + this.peek())}`, start);
    const number = parseNumber(word);
    if (number === undefined) this.fail(`illegal number syntax: ${JSON.stringify(word)}`, start);
    return this.#push("constant", start, word, number);
  }
}

/** Underscores are only valid between digits or after a prefix. */
const INTEGER =
  /^[+-]?(?:0[xX](?:_?[\da-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|0(?:_?[0-7])*|[1-9](?:_?\d)*)$/;
const DECIMAL = /^[+-]?(?:\d(?:_?\d)*\.?(?:\d(?:_?\d)*)?|\.\d(?:_?\d)*)(?:[eE][+-]?\d(?:_?\d)*)?$/;

function parseNumber(word: string): ExpressionValue | undefined {
  const plain = word.replaceAll("_", "").replace("+", "");
  if (INTEGER.test(word)) {
    const isNegative = plain.startsWith("-");
    const digits = plain.replace("-", "").replace(/^0(?=[0-7])/, "0o");
    const value = BigInt(digits.toLowerCase()) * (isNegative ? -1n : 1n);
    // A number that fits into 64 unsigned bits is checked when it is used; others are invalid.
    if (value >= 2n ** 64n || value < -(2n ** 63n)) return undefined;
    return fitsInteger(value) ? toInteger(value) : value;
  }
  if (!DECIMAL.test(word) || /^[+-]?\d+$/.test(word)) return undefined;
  const value = Number(word.replaceAll("_", ""));
  return Number.isFinite(value) ? new Float(value) : undefined;
}
