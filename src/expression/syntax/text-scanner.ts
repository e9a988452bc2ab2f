/** Base of the scanners of both languages: a position in a text, quoted text, and numbers. */
import { LanguageError } from "../values/language-error.ts";

export interface EscapeRules {
  /** The quotation mark that ends the text, and the only one that may be escaped. */
  readonly quote: string;
  /** `\u{1F600}`: only in the expression language. */
  readonly braces: boolean;
  /** Whether `\x41` and `\101` are code points; otherwise they are octets, and the result must be UTF-8. */
  readonly codePoints: boolean;
}

const SIMPLE_ESCAPES: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
};

export class TextScanner {
  readonly text: string;
  protected at = 0;

  constructor(text: string) {
    this.text = text;
  }

  protected get isAtEnd(): boolean {
    return this.at >= this.text.length;
  }

  /** The character `offset` places ahead, empty after the end. */
  protected peek(offset = 0): string {
    return this.text.charAt(this.at + offset);
  }

  protected startsWith(word: string): boolean {
    return this.text.startsWith(word, this.at);
  }

  /** Consumes the text if it is next. */
  protected take(word: string): boolean {
    if (!this.startsWith(word)) return false;
    this.at += word.length;
    return true;
  }

  /** Consumes and returns the match of a sticky pattern; empty if it does not match. */
  protected takeMatch(pattern: RegExp): string {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0] ?? "";
    this.at += found.length;
    return found;
  }

  protected fail(message: string, start = this.at, end = Math.max(this.at, start + 1)): never {
    throw new LanguageError("compile", message, { start, end });
  }

  /** Octets or text between quotation marks on one line; the first mark has been consumed. */
  protected readEscaped(rules: EscapeRules, opened: number): Uint8Array {
    const octets: Buffer[] = [];
    for (;;) {
      const plain = this.text.slice(this.at, this.#endOfPlain(rules.quote));
      this.at += plain.length;
      if (plain !== "") octets.push(Buffer.from(plain, "utf8"));
      if (this.take(rules.quote)) return Buffer.concat(octets);
      if (this.isAtEnd || this.peek() === "\n") this.fail("literal not terminated", opened, this.at);
      octets.push(this.#escape(rules));
    }
  }

  #endOfPlain(quote: string): number {
    let end = this.at;
    while (end < this.text.length && !`${quote}\\\n`.includes(this.text.charAt(end))) end++;
    return end;
  }

  #escape({ quote, braces, codePoints }: EscapeRules): Buffer {
    const start = this.at;
    this.at++;
    const letter = this.peek();
    const simple = SIMPLE_ESCAPES[letter] ?? (letter === quote ? quote : undefined);
    if (simple !== undefined) {
      this.at++;
      return Buffer.from(simple);
    }
    if (letter === "x" || /[0-7]/.test(letter)) {
      const digits = this.takeMatch(letter === "x" ? /x[\da-fA-F]{2}/y : /[0-7]{3}/y).replace("x", "");
      if (digits === "") this.fail("invalid char escape", start, start + 2);
      const number = Number.parseInt(digits, letter === "x" ? 16 : 8);
      if (number > 255) this.fail("octal escape above 255", start);
      return codePoints ? Buffer.from(String.fromCodePoint(number)) : Buffer.of(number);
    }
    const digits =
      this.takeMatch(/u[\da-fA-F]{4}|U[\da-fA-F]{8}/y) ||
      (braces ? this.takeMatch(/u\{[\da-fA-F]{1,6}\}/y) : "");
    if (digits === "") this.fail("invalid char escape", start, start + 2);
    const number = Number.parseInt(digits.replaceAll(/[uU{}]/g, ""), 16);
    if (number > 0x10_ff_ff) this.fail("escape beyond the last character", start);
    // A surrogate is not a character: as in Go, it becomes the replacement character.
    return Buffer.from(String.fromCodePoint(number >= 0xd800 && number <= 0xdfff ? 0xfffd : number));
  }
}

const LEAST = -(2n ** 63n);
const MOST = 2n ** 63n - 1n;

/** True for integers that both languages can represent: 64 bits with sign. */
export function fitsInteger(value: bigint): boolean {
  return value >= LEAST && value <= MOST;
}
