/**
 * Tokens of one record's presentation form (RFC 1035 section 5.1), and parsers of RDATA fields. Names and character strings hold
 * any octets (RFC 2181 section 11), so each character of a token is one octet. JavaScript text is read as its octets in UTF-8.
 */
import { Name, NameError } from "./name.ts";
import { toHex } from "./octets.ts";

/** Text that is not a valid record; `column` counts from 1 within the given text. */
export class PresentationError extends Error {
  override readonly name = "PresentationError";
  readonly text: string;
  readonly column: number;
  readonly reason: string;

  constructor(text: string, column: number, reason: string) {
    super(`column ${column}: ${reason}`);
    this.text = text;
    this.column = column;
    this.reason = reason;
  }
}

/** A word of zone text. */
export interface PresentationToken {
  /** Each character is one octet. Escapes are kept: names and character strings resolve them differently. */
  readonly text: string;
  readonly quoted: boolean;
  /** True if nothing separates this token from the previous one: `key="value"` is two tokens. */
  readonly adjacent: boolean;
  readonly column: number;
}

/** Zone text has only ASCII space. */
const SEPARATOR = /[\t\n\v\f\r ()]/;
const SEPARATOR_OR_SPECIAL = /[\t\n\v\f\r ();"]/;

/** Splits text into tokens. Parentheses only join lines and are dropped; `;` starts a comment. */
export function tokenizeRecord(text: string): PresentationToken[] {
  const tokens: PresentationToken[] = [];
  let at = 0;
  let previousEnd = -1;
  while (at < text.length) {
    const character = text.charAt(at);
    if (SEPARATOR.test(character)) {
      at++;
      continue;
    }
    if (character === ";") {
      const lineEnd = text.indexOf("\n", at);
      at = lineEnd < 0 ? text.length : lineEnd;
      continue;
    }
    const adjacent = at === previousEnd;
    const column = at + 1;
    const quoted = character === '"';
    const start = quoted ? at + 1 : at;
    at = quoted ? endOfQuoted(text, start) : endOfWord(text, start);
    tokens.push({ text: octetText(text.slice(start, at)), quoted, adjacent, column });
    if (quoted) at++;
    previousEnd = at;
  }
  return tokens;
}

function endOfWord(text: string, start: number): number {
  let at = start;
  while (at < text.length && !SEPARATOR_OR_SPECIAL.test(text.charAt(at))) at += text[at] === "\\" ? 2 : 1;
  return Math.min(at, text.length);
}

function endOfQuoted(text: string, start: number): number {
  let at = start;
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  if (at >= text.length) throw new PresentationError(text, start, "quoted text has no closing quote");
  return at;
}

/** The octets of text in UTF-8, each as one character. */
function octetText(text: string): string {
  for (let at = 0; at < text.length; at++)
    if (text.charCodeAt(at) >= 0x80) return Buffer.from(text).toString("latin1");
  return text;
}

/** Turns octets back into the characters that they are in UTF-8, for messages. */
function legible(text: string): string {
  return text.replace(/[\x80-\xff]+/g, (octets) => Buffer.from(octets, "latin1").toString());
}

/** Reads the words of a record in zone text. */
export class RdataScanner {
  readonly text: string;
  readonly origin: Name | undefined;
  readonly #tokens: readonly PresentationToken[];
  #next: number;

  constructor(text: string, tokens: readonly PresentationToken[], start: number, origin?: Name) {
    this.text = text;
    this.origin = origin;
    this.#tokens = tokens;
    this.#next = start;
  }

  static of(text: string, origin?: Name): RdataScanner {
    return new RdataScanner(text, tokenizeRecord(text), 0, origin);
  }

  get hasMore(): boolean {
    return this.#next < this.#tokens.length;
  }

  peek(): PresentationToken | undefined {
    return this.#tokens[this.#next];
  }

  token(what: string): PresentationToken {
    const token = this.#tokens[this.#next];
    if (token === undefined) {
      throw new PresentationError(this.text, this.text.length + 1, `text ends where ${what} is expected`);
    }
    this.#next++;
    return token;
  }

  word(what: string): string {
    return this.token(what).text;
  }

  /**
   * The remaining tokens joined without space, as base64 and hexadecimal fields at the end are written. With `what`, at least one
   * is required.
   */
  restJoined(what?: string): string {
    let joined = what === undefined ? "" : this.word(what);
    while (this.hasMore) joined += this.word("more data");
    return joined;
  }

  integer(what: string, most: number): number {
    const token = this.token(what);
    const value = /^\d+$/.test(token.text) ? Number(token.text) : Number.NaN;
    if (!(value <= most))
      throw this.fail(`${what} must be a number from 0 to ${most}, not "${token.text}"`, token);
    return value;
  }

  domainName(what: string): Name {
    const token = this.token(what);
    try {
      return Name.parseOctets(token.text, this.origin);
    } catch (error) {
      if (error instanceof NameError) throw this.fail(`${what}: ${error.message}`, token);
      throw error;
    }
  }

  /** One `<character-string>` with its escapes resolved. */
  characterString(what: string): Uint8Array {
    const token = this.token(what);
    const octets = unescapeText(token.text);
    if (octets === undefined) throw this.fail(`${what}: bad escape in "${token.text}"`, token);
    return octets;
  }

  fail(
    reason: string,
    token: PresentationToken | undefined = this.#tokens[this.#next - 1],
  ): PresentationError {
    return new PresentationError(this.text, token?.column ?? this.text.length + 1, legible(reason));
  }
}

/**
 * Octets of a character string as written in zone text, each character one octet; `undefined` for an escape above 255 or cut off.
 */
export function unescapeText(text: string): Uint8Array | undefined {
  const octets = new Uint8Array(text.length);
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "\\") {
      const digits = text.slice(at + 1, at + 4);
      if (/^\d{3}$/.test(digits)) {
        if (Number(digits) > 255) return undefined;
        octets[length++] = Number(digits);
        at += 3;
        continue;
      }
      at++;
      if (at >= text.length) return undefined;
    }
    octets[length++] = text.charCodeAt(at);
  }
  return octets.subarray(0, length);
}

/** The form of RFC 3597 section 5 for RDATA of any type. */
export function opaqueText(octets: Uint8Array): string {
  return octets.length === 0 ? "\\# 0" : `\\# ${octets.length} ${toHex(octets).toUpperCase()}`;
}

/** A character string in quotes, with everything outside of printable ASCII as `\ddd`. */
export function quoteText(octets: Uint8Array): string {
  return `"${escapeText(octets)}"`;
}

export function escapeText(octets: Uint8Array): string {
  let text = "";
  for (const octet of octets) {
    if (octet < 0x20 || octet >= 0x7f) text += `\\${octet.toString().padStart(3, "0")}`;
    else if (octet === 0x22 || octet === 0x5c) text += `\\${String.fromCharCode(octet)}`;
    else text += String.fromCharCode(octet);
  }
  return text;
}
