/**
 * Parses master files (RFC 1035 section 5): entries to records, with `$ORIGIN`, `$TTL` (RFC 2308 section 4), `$INCLUDE` and
 * `$GENERATE`. It works on the available octets and asks for more; the caller reads the files (`read.ts`).
 */
import { RecordClass } from "../numbers.ts";
import { octetAt, readU32 } from "../octets.ts";
import { RecordType, recordTypeName } from "../type-names.ts";
import { EntryScanner, Scan } from "./entry-scanner.ts";
import type { ZoneTextFaults } from "./fault.ts";
import { compileTemplate, GeneratedLines, GenerateProblem, parseRange, templateText } from "./generate.ts";
import { RdataWriter, tokenText } from "./rdata-writer.ts";
import {
  CLASS_BIT,
  isDigit,
  NAME_ROOM,
  nameProblem,
  readTtl,
  readWord,
  UNKNOWN_WORD,
  writeName,
} from "./words.ts";

/** A record. The object is reused: the callee must copy what it needs before it returns. */
export interface ZoneTextRecord {
  /** The owner in uncompressed wire form and as spelled, in `owner[0, ownerLength)`. */
  readonly owner: Uint8Array;
  readonly ownerLength: number;
  readonly type: number;
  readonly class: number;
  /** Seconds. */
  readonly ttl: number;
  /** RDATA in uncompressed wire form, in `rdata[0, rdataLength)`. */
  readonly rdata: Uint8Array;
  readonly rdataLength: number;
  readonly file: string;
  readonly line: number;
}

/** Takes the records of a zone file, in their order. */
export interface ZoneTextSink {
  /**
   * @returns the fault of the record, if there is one; a text that begins with `warning: ` does not keep the zone from being served
   */
  record(record: ZoneTextRecord): string | undefined;
}

/** Octets that take as long as an entry. */
const OCTETS_OF_ENTRY = 256;

/** A file, or the lines of a `$GENERATE`, while it is being read. */
export class ZoneTextFrame {
  readonly file: string;
  readonly scanner = new EntryScanner();
  origin: Uint8Array;
  ttl: number;
  /** Place of faults, for generated text. */
  readonly place: { readonly line: number; readonly column: number } | undefined;
  readonly generated: GeneratedLines | undefined;
  /** The owner when an inner file began, which a following record without an owner takes. */
  ownerBefore: Uint8Array | undefined;

  constructor(
    file: string,
    origin: Uint8Array,
    ttl: number,
    place?: { readonly line: number; readonly column: number },
    generated?: GeneratedLines,
  ) {
    this.file = file;
    this.origin = origin;
    this.ttl = ttl;
    this.place = place;
    this.generated = generated;
  }
}

/** `$INCLUDE`: the caller resolves the file name. */
export interface IncludeRequest {
  readonly file: string;
  readonly origin: Uint8Array;
}

export const Step = { PORTION: 0, MORE: 1, INCLUDE: 2, DONE: 3 } as const;
export type StepResult = (typeof Step)[keyof typeof Step];

const NO_TTL = -1;
/** RFC 2181 section 8. */
const MAX_TTL = 0x7fff_ffff;
/** A file that includes itself would never end. CoreDNS has the same limit. */
const MAX_DEPTH = 7;

export class ZoneTextParser implements ZoneTextRecord {
  readonly owner: Uint8Array = new Uint8Array(NAME_ROOM);
  ownerLength = 0;
  type = 0;
  class: number = RecordClass.IN;
  ttl = 0;
  readonly rdata: Uint8Array;
  rdataLength = 0;

  /** The request of {@link step} when it returns INCLUDE. */
  include: IncludeRequest | undefined;
  readonly #frames: ZoneTextFrame[] = [];
  readonly #rdataWriter = new RdataWriter();
  readonly #sink: ZoneTextSink;
  readonly #faults: ZoneTextFaults;
  #lastTtl = NO_TTL;
  #soaTtl = NO_TTL;
  /** Of a `$TTL` in a finished file, for records without any other TTL. */
  #includedTtl = NO_TTL;

  constructor(sink: ZoneTextSink, faults: ZoneTextFaults) {
    this.#sink = sink;
    this.#faults = faults;
    this.rdata = this.#rdataWriter.octets;
  }

  get file(): string {
    return this.#frame.file;
  }

  get line(): number {
    const { scanner, place } = this.#frame;
    return place?.line ?? scanner.lines[0] ?? 0;
  }

  get #frame(): ZoneTextFrame {
    const frame = this.#frames.at(-1);
    if (frame === undefined) throw new RangeError("nothing is being read");
    return frame;
  }

  /** Opens a file; the previous one continues after its end. The returned scanner needs octets. */
  open(file: string, origin: Uint8Array): EntryScanner {
    const frame = new ZoneTextFrame(file, origin, this.#frames.at(-1)?.ttl ?? NO_TTL);
    if (this.#frames.length === 0) this.#setOwner(origin);
    this.#push(frame);
    return frame.scanner;
  }

  /** The scanner that needs more octets. */
  get scanner(): EntryScanner {
    return this.#frame.scanner;
  }

  /** Depth of nested files. */
  get depth(): number {
    return this.#frames.length;
  }

  /** Reads up to `entries` entries. */
  step(entries: number): StepResult {
    for (let left = entries; left > 0; ) {
      const frame = this.#frame;
      const { scanner } = frame;
      const found = scanner.next();
      if (found === Scan.MORE) {
        if (frame.generated === undefined) return Step.MORE;
        frame.generated.refill(scanner);
        continue;
      }
      // Lines of $GENERATE inherit the line break from their entry.
      if (scanner.brokenLine > 0 && frame.place === undefined) this.#warnOfBrokenText(scanner);
      left -= 1 + (scanner.at - scanner.entryStart) / OCTETS_OF_ENTRY;
      if (found === Scan.END) {
        this.#frames.pop();
        if (frame.ttl !== NO_TTL) this.#includedTtl = frame.ttl;
        // `$TTL`, `$ORIGIN` and the owner of an included file end with it.
        if (this.#frames.length === 0) return Step.DONE;
        const { ownerBefore } = this.#frame;
        if (ownerBefore !== undefined) this.#setOwner(ownerBefore);
      } else if (found === Scan.FAULT) {
        this.#faultAt(scanner.faultLine, scanner.faultColumn, scanner.faultReason);
      } else if (this.#isDirective(scanner)) {
        this.#directive(frame);
        if (this.include !== undefined) return Step.INCLUDE;
      } else {
        this.#record(frame);
      }
    }
    return Step.PORTION;
  }

  /** A fault at the place of the last entry. */
  fault(token: number, reason: string): undefined {
    const { scanner } = this.#frame;
    const at = Math.min(token, scanner.count - 1);
    const past = token >= scanner.count && at >= 0;
    const length = past ? (scanner.ends[at] ?? 0) - (scanner.starts[at] ?? 0) : 0;
    this.#faultAt(scanner.lines[at] ?? scanner.line, (scanner.columns[at] ?? 1) + length, reason);
  }

  #faultAt(line: number, column: number, reason: string): void {
    const { file, place } = this.#frame;
    const warning = reason.startsWith(WARNING);
    this.#faults.add({
      file,
      line: place?.line ?? line,
      column: place?.column ?? column,
      reason: inOneLine(warning ? reason.slice(WARNING.length) : reason),
      severity: warning ? "warning" : "error",
    });
  }

  /** It may be intended, as in pasted keys, or a quote may be missing. */
  #warnOfBrokenText({ brokenLine, brokenColumn, brokenEnd }: EntryScanner): void {
    const reason = `quoted text continues to line ${brokenEnd} and includes the line breaks`;
    this.#faultAt(brokenLine, brokenColumn, WARNING + reason);
  }

  #push(frame: ZoneTextFrame): void {
    const outer = this.#frames.at(-1);
    if (outer !== undefined) outer.ownerBefore = this.owner.slice(0, this.ownerLength);
    this.#frames.push(frame);
  }

  #setOwner(octets: Uint8Array): void {
    this.owner.set(octets);
    this.ownerLength = octets.length;
  }

  #isDirective(scanner: EntryScanner): boolean {
    return !scanner.indented && octetAt(scanner.bytes, scanner.starts[0] as number) === 0x24;
  }

  #record(frame: ZoneTextFrame): undefined {
    const { scanner } = frame;
    let token = 0;
    if (!scanner.indented) {
      const end = this.#name(scanner, 0, this.owner, frame.origin);
      if (end < 0) return this.#badName(0, end);
      this.ownerLength = end;
      token = 1;
    }
    let ttl = NO_TTL;
    let recordClass = -1;
    for (; ; token++) {
      if (token >= scanner.count) return this.fault(token, "text ends where a record type is expected");
      const start = scanner.starts[token] as number;
      const end = scanner.ends[token] as number;
      if (ttl === NO_TTL && isDigit(octetAt(scanner.bytes, start))) {
        ttl = readTtl(scanner.bytes, start, end);
        if (ttl < 0) return this.fault(token, `not a TTL: "${tokenText(scanner, token)}"`);
        ttl = this.#bounded(ttl, token);
        continue;
      }
      const word = end > start ? readWord(scanner.bytes, start, end) : UNKNOWN_WORD;
      if (word === UNKNOWN_WORD)
        return this.fault(token, `"${tokenText(scanner, token)}" is not a record type`);
      if (word >= CLASS_BIT && recordClass < 0) {
        recordClass = word - CLASS_BIT;
        continue;
      }
      if (word >= CLASS_BIT) return this.fault(token, "a second class");
      this.type = word;
      break;
    }
    this.class = recordClass < 0 ? RecordClass.IN : recordClass;
    if (isQuestionType(this.type))
      return this.fault(
        token,
        `${recordTypeName(this.type)} is only for questions: a zone cannot have such records`,
      );
    const length = this.#rdataWriter.write(scanner, token + 1, this.type, frame.origin);
    if (length < 0) return this.fault(this.#rdataWriter.faultToken, this.#rdataWriter.faultReason);
    this.rdataLength = length;
    if (!this.#settleTtl(frame, ttl)) {
      return this.fault(token, "no TTL: write one, or a $TTL line before it");
    }
    const problem = this.#sink.record(this);
    if (problem !== undefined) this.fault(0, problem);
  }

  #settleTtl(frame: ZoneTextFrame, given: number): boolean {
    if (given !== NO_TTL) {
      this.#lastTtl = given;
      this.ttl = given;
    } else if (frame.ttl !== NO_TTL) this.ttl = frame.ttl;
    else if (this.#soaTtl !== NO_TTL) this.ttl = this.#soaTtl;
    else if (this.#lastTtl !== NO_TTL) this.ttl = this.#lastTtl;
    else if (this.#includedTtl !== NO_TTL) this.ttl = this.#includedTtl;
    else if (this.type === RecordType.SOA && this.rdataLength >= 4) {
      // Files from before RFC 2308 have no other TTL than the last number of the SOA record.
      this.#soaTtl = Math.min(readU32(this.rdata, this.rdataLength - 4), MAX_TTL);
      this.ttl = this.#soaTtl;
    } else return false;
    return true;
  }

  /** All 32 bits are read, and the upper half means 0, as in resolvers (RFC 2181 section 8). */
  #bounded(ttl: number, token: number): number {
    if (ttl <= MAX_TTL) return ttl;
    this.fault(token, `${WARNING}a TTL above ${MAX_TTL} seconds means 0 (RFC 2181), not ${ttl}`);
    return 0;
  }

  #name(scanner: EntryScanner, token: number, target: Uint8Array, origin: Uint8Array): number {
    return writeName(
      scanner.bytes,
      scanner.starts[token] as number,
      scanner.ends[token] as number,
      target,
      0,
      origin,
    );
  }

  #badName(token: number, code: number): undefined {
    this.fault(
      token,
      `not a domain name: "${tokenText(this.scanner, token).slice(0, 80)}": ${nameProblem(code)}`,
    );
  }

  #directive(frame: ZoneTextFrame): undefined {
    const { scanner } = frame;
    const word = tokenText(scanner, 0).toUpperCase();
    if (word === "$ORIGIN") {
      const origin = this.#directiveName(scanner, 1, frame.origin);
      if (origin !== undefined && this.#hasNoMore(2)) frame.origin = origin;
    } else if (word === "$TTL") {
      if (scanner.count < 2) return this.fault(1, "text ends where a TTL is expected");
      const ttl = readTtl(scanner.bytes, scanner.starts[1] as number, scanner.ends[1] as number);
      if (ttl < 0) return this.fault(1, `not a TTL: "${tokenText(scanner, 1)}"`);
      if (this.#hasNoMore(2)) frame.ttl = this.#bounded(ttl, 1);
    } else if (word === "$INCLUDE") {
      if (scanner.count < 2) return this.fault(1, "text ends where a file is expected");
      const origin = scanner.count > 2 ? this.#directiveName(scanner, 2, frame.origin) : frame.origin;
      if (origin === undefined || !this.#hasNoMore(3)) return;
      if (this.#frames.length > MAX_DEPTH) return this.fault(1, "too deeply nested $INCLUDE");
      this.include = { file: tokenText(scanner, 1), origin };
    } else if (word === "$GENERATE") this.#generate(frame);
    else
      this.fault(
        0,
        `unknown directive ${tokenText(scanner, 0)}: expected $ORIGIN, $TTL, $INCLUDE or $GENERATE`,
      );
  }

  #directiveName(scanner: EntryScanner, token: number, origin: Uint8Array): Uint8Array | undefined {
    if (token >= scanner.count) {
      this.fault(token, "text ends where a domain name is expected");
      return undefined;
    }
    const target = new Uint8Array(NAME_ROOM);
    const end = this.#name(scanner, token, target, origin);
    if (end >= 0) return target.slice(0, end);
    this.#badName(token, end);
    return undefined;
  }

  #hasNoMore(token: number): boolean {
    if (token >= this.scanner.count) return true;
    this.fault(token, `unexpected "${tokenText(this.scanner, token)}"`);
    return false;
  }

  #generate(frame: ZoneTextFrame): undefined {
    const { scanner } = frame;
    if (frame.place !== undefined) return this.fault(0, "$GENERATE cannot generate another $GENERATE");
    if (scanner.count < 4)
      return this.fault(scanner.count, "$GENERATE needs a range, a name, a type and data");
    const range = parseRange(tokenText(scanner, 1));
    if (typeof range === "string") return this.fault(1, range);
    const template = compileTemplate(templateText(scanner), range.start);
    if (template instanceof GenerateProblem) return this.fault(2, template.reason);
    const lines = new GeneratedLines(template, range);
    if (lines.isTooLong) return this.fault(2, "the lines of $GENERATE are too long");
    const place = { line: scanner.lines[0] as number, column: scanner.columns[0] as number };
    const generated = new ZoneTextFrame(frame.file, frame.origin, frame.ttl, place, lines);
    lines.refill(generated.scanner);
    this.#push(generated);
  }
}

const WARNING = "warning: ";

/** Characters of a reason, which may contain words of zone text of any length. */
const MAX_REASON = 400;

/** Quoted words may contain line breaks. */
function inOneLine(reason: string): string {
  const short = reason.length > MAX_REASON ? `${reason.slice(0, MAX_REASON)}…` : reason;
  return short.replace(/\p{Cc}/gu, (control) => `\\${control.charCodeAt(0).toString().padStart(3, "0")}`);
}

/** RFC 6895 section 3.1: 128 to 255 are question types and meta-types. */
function isQuestionType(type: number): boolean {
  return (type >= 128 && type <= 255) || type === RecordType.OPT;
}
