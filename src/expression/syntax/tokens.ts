/** The tokens of the expression language. */
import type { Extent } from "../values/language-error.ts";
import { type ExpressionValue, Float, toInteger } from "../values/values.ts";
import { fitsInteger, TextScanner } from "./text-scanner.ts";

export type ExpressionTokenKind = "name" | "number" | "string" | "bytes" | "operator" | "bracket" | "end";

export interface ExpressionToken extends Extent {
  readonly kind: ExpressionTokenKind;
  /** As written; for quoted text, its content. */
  readonly text: string;
  /** The value of a literal. */
  readonly value: ExpressionValue;
}

/** Words that are operators and never names. */
export const OPERATOR_WORDS: ReadonlySet<string> = new Set([
  "not",
  "in",
  "or",
  "and",
  "matches",
  "contains",
  "startsWith",
  "endsWith",
  "let",
  "if",
  "else",
]);

/** Longer ones first. */
const OPERATORS = /\*\*|\?\?|\?\.|\?:|\.\.|::|==|!=|<=|>=|&&|\|\||[-+*/%^!<>=?:.,;|#]/y;

const NAME = /[\p{L}_$][\p{L}\p{Nd}_$]*/uy;

/** @throws LanguageError */
export function tokenize(text: string): ExpressionToken[] {
  return new Tokenizer(text).run();
}

class Tokenizer extends TextScanner {
  readonly #tokens: ExpressionToken[] = [];

  run(): ExpressionToken[] {
    for (;;) {
      this.#skipSpace();
      const start = this.at;
      if (this.isAtEnd) {
        this.#push("end", start, "");
        return this.#tokens;
      }
      this.#readToken(start);
    }
  }

  #skipSpace(): void {
    for (;;) {
      if (this.takeMatch(/[ \t\r\n]+/y) !== "") continue;
      if (this.startsWith("//")) {
        this.takeMatch(/[^\n]*/y);
        continue;
      }
      if (!this.startsWith("/*")) return;
      const end = this.text.indexOf("*/", this.at + 2);
      if (end < 0) this.fail("unclosed comment", this.at, this.at + 2);
      this.at = end + 2;
    }
  }

  #readToken(start: number): ExpressionToken {
    const first = this.peek();
    if (/\d/.test(first) || (first === "." && /\d/.test(this.peek(1)))) return this.#readNumber(start);
    if (first === '"' || first === "'") {
      this.at++;
      const octets = this.readEscaped({ quote: first, braces: true, codePoints: true }, start);
      return this.#push("string", start, Buffer.from(octets).toString("utf8"));
    }
    if (first === "`") return this.#readRaw(start);
    if (first === "b" && /["']/.test(this.peek(1))) {
      const quote = this.peek(1);
      this.at += 2;
      const octets = this.readEscaped({ quote, braces: false, codePoints: false }, start);
      if (/(?<!\\)(?:\\\\)*\\[uU]/.test(this.text.slice(start, this.at)))
        this.fail("octets have no character escapes", start);
      return this.#push("bytes", start, "", Uint8Array.from(octets));
    }
    if ("()[]{}".includes(first)) {
      this.at++;
      return this.#push("bracket", start, first);
    }
    const name = this.takeMatch(NAME);
    if (name !== "") return this.#push(OPERATOR_WORDS.has(name) ? "operator" : "name", start, name);
    const operator = this.takeMatch(OPERATORS);
    if (operator === "") this.fail(`unrecognized character: ${JSON.stringify(first)}`);
    return this.#push("operator", start, operator);
  }

  #readRaw(start: number): ExpressionToken {
    let value = "";
    this.at++;
    for (;;) {
      const end = this.text.indexOf("`", this.at);
      if (end < 0) this.fail("literal not terminated", start, this.text.length);
      value += this.text.slice(this.at, end);
      this.at = end + 1;
      if (this.peek() !== "`") break;
      value += "`";
      this.at++;
    }
    return this.#push("string", start, value);
  }

  #readNumber(start: number): ExpressionToken {
    const prefixed = this.takeMatch(/0[xX][\da-fA-F_]*|0[oO][0-7_]*|0[bB][01_]*/y);
    if (prefixed === "") {
      const hasPoint = /\.(?!\.)/.test(this.takeMatch(/\d[\d_]*(?:\.(?!\.)[\d_]*)?|\.\d[\d_]*/y));
      const exponent = this.takeMatch(/[eE][+-]?[\d_]*/y);
      this.#endNumber(start);
      const word = this.text.slice(start, this.at);
      if (hasPoint || exponent !== "") return this.#pushFloat(start, word);
      return this.#pushInteger(start, word, BigInt(word.replaceAll("_", "")));
    }
    this.#endNumber(start);
    const digits = prefixed.replaceAll("_", "").toLowerCase();
    if (digits.length < 3) this.fail(`bad number syntax: ${JSON.stringify(prefixed)}`, start);
    return this.#pushInteger(start, prefixed, BigInt(digits));
  }

  /** A number must not be directly followed by a letter. */
  #endNumber(start: number): void {
    if (/[\p{L}\p{Nd}_]/u.test(this.peek()))
      this.fail(
        `bad number syntax: ${JSON.stringify(this.text.slice(start, this.at + 1))}`,
        start,
        this.at + 1,
      );
  }

  #pushInteger(start: number, word: string, value: bigint): ExpressionToken {
    if (!fitsInteger(value)) this.fail(`invalid integer literal: ${word} does not fit 64 bits`, start);
    return this.#push("number", start, word, toInteger(value));
  }

  #pushFloat(start: number, word: string): ExpressionToken {
    const value = Number(word.replaceAll("_", ""));
    if (!Number.isFinite(value)) this.fail(`invalid float literal: ${word}`, start);
    return this.#push("number", start, word, new Float(value));
  }

  #push(
    kind: ExpressionTokenKind,
    start: number,
    text: string,
    value: ExpressionValue = text,
  ): ExpressionToken {
    const token = { kind, text, value, start, end: this.at };
    this.#tokens.push(token);
    return token;
  }
}
