/**
 * Splits zone text (RFC 1035 section 5.1) into entries and tokens: an entry is a line, or several lines joined by parentheses.
 * Tokens are ranges of octets and not strings, since most of them never become text.
 */
import { octetAt } from "../octets.ts";

/** Result of {@link EntryScanner.next}. */
export const Scan = { ENTRY: 0, END: 1, MORE: 2, FAULT: 3 } as const;
export type ScanResult = (typeof Scan)[keyof typeof Scan];

const WORD = 0;
const SPACE = 1;
const NEWLINE = 2;
const COMMENT = 3;
const OPEN = 4;
const CLOSE = 5;
const QUOTE = 6;
const BACKSLASH = 7;

/** The kind of each octet outside of quotes. */
const KINDS = new Uint8Array(256);
for (const space of "\t\v\f\r ") KINDS[space.charCodeAt(0)] = SPACE;
KINDS[0x0a] = NEWLINE;
KINDS[0x3b] = COMMENT;
KINDS[0x28] = OPEN;
KINDS[0x29] = CLOSE;
KINDS[0x22] = QUOTE;
KINDS[0x5c] = BACKSLASH;

/** Quoted text may contain octets that end a word outside. */
export const QUOTED = 1;
/** Nothing separates this token from the previous one: `key="value"` is two tokens. */
export const ADJACENT = 2;

/** More octets than quoted text can have: RDATA has 65,535, each written with at most four characters. */
const MAX_QUOTED_OCTETS = 262_144;

/** More tokens than RDATA of 65,535 octets can have, one per octet. */
const MAX_TOKENS = 100_000;

export class EntryScanner {
  bytes: Uint8Array = new Uint8Array(0);
  /** The next octet to read, and the end of the available ones. */
  at = 0;
  limit = 0;
  /** No more octets follow `limit`. */
  final = true;
  /** The line of `at`, and its start: negative once its first octets are gone. */
  line = 1;
  lineStart = 0;

  /** Tokens of the entry. */
  count = 0;
  starts: Int32Array = new Int32Array(64);
  ends: Int32Array = new Int32Array(64);
  lines: Int32Array = new Int32Array(64);
  columns: Int32Array = new Int32Array(64);
  flags: Uint8Array = new Uint8Array(64);
  /** The entry begins with a space: it has the owner of the previous entry. */
  indented = false;
  /** The first quoted text of the entry that spans several lines: its start, and the line of its end. 0 if no text does. */
  brokenLine = 0;
  brokenColumn = 0;
  brokenEnd = 0;
  /** Line ends in the last quoted text, and the offset after the last of them. */
  #quotedLines = 0;
  #quotedLineStart = 0;
  /** Start of the entry, for callers that need its octets. */
  entryStart = 0;

  faultLine = 0;
  faultColumn = 0;
  faultReason = "";

  /** Finds the next entry with tokens. With MORE nothing is consumed: call again when there are more octets. */
  next(): ScanResult {
    const { bytes, limit } = this;
    let { at, line, lineStart } = this;
    let depth = 0;
    let openLine = 0;
    let openColumn = 0;
    let previousEnd = -1;
    this.count = 0;
    this.brokenLine = 0;
    this.entryStart = at;
    this.indented = at < limit && KINDS[octetAt(bytes, at)] === SPACE;
    for (;;) {
      if (at >= limit) {
        if (!this.final) return Scan.MORE;
        if (depth > 0) {
          this.#resume(at, line, lineStart);
          return this.#fault(openLine, openColumn, "parenthesis is never closed");
        }
        this.#resume(at, line, lineStart);
        return this.count > 0 ? Scan.ENTRY : Scan.END;
      }
      const kind = octetAt(KINDS, octetAt(bytes, at));
      if (kind === SPACE) {
        at++;
      } else if (kind === NEWLINE) {
        at++;
        line++;
        lineStart = at;
        if (depth > 0) continue;
        this.#resume(at, line, lineStart);
        if (this.count > 0) return Scan.ENTRY;
        this.entryStart = at;
        this.indented = at < limit && KINDS[octetAt(bytes, at)] === SPACE;
      } else if (kind === COMMENT) {
        while (at < limit && octetAt(bytes, at) !== 0x0a) at++;
      } else if (kind === OPEN) {
        if (depth++ === 0) {
          openLine = line;
          openColumn = at - lineStart + 1;
        }
        at++;
      } else if (kind === CLOSE) {
        if (depth === 0)
          return this.#skipLine(at, line, lineStart, at, "closing parenthesis without an opening one");
        depth--;
        at++;
      } else {
        const start = kind === QUOTE ? at + 1 : at;
        const end = kind === QUOTE ? this.#quotedEnd(start) : this.#wordEnd(start);
        if (end < 0) {
          if (end === CUT_OFF) return Scan.MORE;
          return this.#skipLine(at, line, lineStart, at, this.#problem(end, line));
        }
        if (this.count >= MAX_TOKENS)
          return this.#skipLine(at, line, lineStart, at, "more words than any record has");
        this.#take(
          start,
          end,
          line,
          at - lineStart + 1,
          (kind === QUOTE ? QUOTED : 0) | (at === previousEnd ? ADJACENT : 0),
        );
        at = kind === QUOTE ? end + 1 : end;
        previousEnd = at;
        if (kind === QUOTE && this.#quotedLines > 0) {
          if (this.brokenLine === 0) {
            this.brokenLine = line;
            this.brokenColumn = start - lineStart;
            this.brokenEnd = line + this.#quotedLines;
          }
          line += this.#quotedLines;
          lineStart = this.#quotedLineStart;
        }
      }
    }
  }

  #wordEnd(start: number): number {
    const { bytes, limit } = this;
    let at = start;
    while (at < limit) {
      const kind = octetAt(KINDS, octetAt(bytes, at));
      if (kind === WORD) at++;
      else if (kind !== BACKSLASH) return at;
      else if (at + 1 < limit && octetAt(bytes, at + 1) === 0x0a) return LINE_ENDS;
      else at += 2;
    }
    return this.final ? limit : CUT_OFF;
  }

  /** Any octet may occur between quotes (RFC 1035 section 5.1), including line ends. */
  #quotedEnd(start: number): number {
    const { bytes, limit } = this;
    let at = start;
    this.#quotedLines = 0;
    while (at < limit) {
      let octet = octetAt(bytes, at);
      if (octet === 0x22) return this.#quotedLines === 0 ? at : this.#brokenTextEnd(at);
      if (octet === 0x5c && ++at < limit) octet = octetAt(bytes, at);
      at++;
      if (octet !== 0x0a) continue;
      if (at - start > MAX_QUOTED_OCTETS) return UNCLOSED;
      this.#quotedLines++;
      this.#quotedLineStart = at;
    }
    return this.final ? UNCLOSED : CUT_OFF;
  }

  /**
   * If a closing quote is missing, the next quote opens another text, whose first octet directly follows it. Taking it for the
   * closing quote would turn the lines between into text.
   */
  #brokenTextEnd(at: number): number {
    if (at + 1 >= this.limit) return this.final ? at : CUT_OFF;
    const next = octetAt(KINDS, octetAt(this.bytes, at + 1));
    return next === WORD || next === BACKSLASH || next === QUOTE ? OPENS_ANOTHER : at;
  }

  #problem(end: number, line: number): string {
    if (end === LINE_ENDS) return "backslash at the end of a line";
    if (end === UNCLOSED) return "quoted text has no closing quote";
    return `quoted text has no closing quote: the next one, in line ${line + this.#quotedLines}, opens another text`;
  }

  #take(start: number, end: number, line: number, column: number, flags: number): void {
    const index = this.count++;
    if (index >= this.starts.length) this.#grow();
    this.starts[index] = start;
    this.ends[index] = end;
    this.lines[index] = line;
    this.columns[index] = column;
    this.flags[index] = flags;
  }

  #grow(): void {
    const length = this.starts.length * 4;
    const larger = (from: Int32Array): Int32Array => {
      const to = new Int32Array(length);
      to.set(from);
      return to;
    };
    this.starts = larger(this.starts);
    this.ends = larger(this.ends);
    this.lines = larger(this.lines);
    this.columns = larger(this.columns);
    const flags = new Uint8Array(length);
    flags.set(this.flags);
    this.flags = flags;
  }

  #resume(at: number, line: number, lineStart: number): void {
    this.at = at;
    this.line = line;
    this.lineStart = lineStart;
  }

  /** A fault skips the rest of its line; reading continues after it. */
  #skipLine(from: number, line: number, lineStart: number, faultAt: number, reason: string): ScanResult {
    let at = from;
    while (at < this.limit && octetAt(this.bytes, at) !== 0x0a) at++;
    if (at >= this.limit && !this.final) return Scan.MORE;
    const column = faultAt - lineStart + 1;
    if (at < this.limit) this.#resume(at + 1, line + 1, at + 1);
    else this.#resume(at, line, lineStart);
    return this.#fault(line, column, reason);
  }

  #fault(line: number, column: number, reason: string): ScanResult {
    this.faultLine = line;
    this.faultColumn = column;
    this.faultReason = reason;
    return Scan.FAULT;
  }
}

const CUT_OFF = -1;
const UNCLOSED = -2;
const OPENS_ANOTHER = -3;
const LINE_ENDS = -4;
