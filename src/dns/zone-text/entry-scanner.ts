/**
 * Entries of zone text (RFC 1035 section 5.1) as tokens: an entry is a line, or several that parentheses join. Tokens are places in the
 * octets and not strings: most of them are never made into text.
 */
import { octetAt } from "../octets.ts";

/** What {@link EntryScanner.next} found. */
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

/** What each octet is outside of quotes. */
const KINDS = new Uint8Array(256);
for (const space of "\t\v\f\r ") KINDS[space.charCodeAt(0)] = SPACE;
KINDS[0x0a] = NEWLINE;
KINDS[0x3b] = COMMENT;
KINDS[0x28] = OPEN;
KINDS[0x29] = CLOSE;
KINDS[0x22] = QUOTE;
KINDS[0x5c] = BACKSLASH;

/** Quoted text may hold what ends a word outside. */
export const QUOTED = 1;
/** Nothing stands between this token and the one before: `key="value"` is two tokens. */
export const ADJACENT = 2;

/** More tokens than RDATA of 65,535 octets can have, one an octet. */
const MAX_TOKENS = 100_000;

export class EntryScanner {
  bytes: Uint8Array = new Uint8Array(0);
  /** The next octet to be read, and the end of those at hand. */
  at = 0;
  limit = 0;
  /** Nothing comes behind `limit`. */
  final = true;
  /** The line of `at`, and where it begins: below 0 when its first octets are gone. */
  line = 1;
  lineStart = 0;

  /** Tokens of the entry. */
  count = 0;
  starts: Int32Array = new Int32Array(64);
  ends: Int32Array = new Int32Array(64);
  lines: Int32Array = new Int32Array(64);
  columns: Int32Array = new Int32Array(64);
  flags: Uint8Array = new Uint8Array(64);
  /** The entry begins with a space: it has the owner of the one before. */
  indented = false;
  /** Where the entry begins, for who needs its octets as they are. */
  entryStart = 0;

  faultLine = 0;
  faultColumn = 0;
  faultReason = "";

  /** Finds the next entry that has tokens. With MORE nothing is consumed: ask again when there are more octets. */
  next(): ScanResult {
    const { bytes, limit } = this;
    let { at, line, lineStart } = this;
    let depth = 0;
    let openLine = 0;
    let openColumn = 0;
    let previousEnd = -1;
    this.count = 0;
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
          return this.#skipLine(at, line, lineStart, at, "quoted text has no closing quote in its line");
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
      }
    }
  }

  #wordEnd(start: number): number {
    const { bytes, limit } = this;
    let at = start;
    while (at < limit) {
      const kind = octetAt(KINDS, octetAt(bytes, at));
      if (kind === WORD) at++;
      else if (kind === BACKSLASH) at += 2;
      else return at;
    }
    return this.final ? limit : CUT_OFF;
  }

  #quotedEnd(start: number): number {
    const { bytes, limit } = this;
    let at = start;
    while (at < limit) {
      const octet = octetAt(bytes, at);
      if (octet === 0x22) return at;
      if (octet === 0x0a) return UNCLOSED;
      at += octet === 0x5c ? 2 : 1;
    }
    return this.final ? UNCLOSED : CUT_OFF;
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

  /** A fault costs the rest of its line; reading goes on behind it. */
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
