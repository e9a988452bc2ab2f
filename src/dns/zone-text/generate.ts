/**
 * `$GENERATE START-STOP[/STEP] LHS [TTL] [CLASS] TYPE RHS`, as in BIND: a line for each number, in which `$` is replaced by the
 * number and `${OFFSET[,WIDTH[,BASE]]}` by another form of it. `\$` is a dollar sign.
 */
import { RecordType } from "../type-names.ts";
import { type EntryScanner, QUOTED } from "./entry-scanner.ts";
import { latin1, readWord } from "./words.ts";

export interface GenerateRange {
  readonly start: number;
  readonly stop: number;
  readonly step: number;
}

/** More lines are a mistake: CoreDNS has the same limit. */
const MAX_LINES = 65_536;
/** Characters of a line. BIND allows 2,048. */
const MAX_LINE = 16_384;
/** Octets of lines generated at a time. */
const CHUNK_OCTETS = 16_384;
/** A longer entry has an unclosed parenthesis. */
const MAX_ENTRY_OCTETS = 1024 * 1024;

/** @returns the error, for an invalid range */
export function parseRange(text: string): GenerateRange | string {
  const [, first, last, every] = /^(\d{1,10})-(\d{1,10})(?:\/\+?(\d{1,10}))?$/.exec(text) ?? [];
  if (first === undefined || last === undefined) return `not a range such as 1-10 or 1-10/2: "${text}"`;
  const [start, stop, step] = [Number(first), Number(last), Number(every ?? 1)];
  if (start > stop) return `a range must not end before it begins: "${text}"`;
  if (step === 0) return `the step of a range must be at least 1: "${text}"`;
  if ((stop - start) / step >= MAX_LINES) return `a range of more than ${MAX_LINES} numbers: "${text}"`;
  return { start, stop, step };
}

/** Types whose data can be one quoted text. CoreDNS takes the quotes as such, BIND removes them and reads the content again. */
const TEXT_TYPES: ReadonlySet<number> = new Set([
  RecordType.TXT,
  RecordType.SPF,
  RecordType.HINFO,
  RecordType.X25,
  RecordType.ISDN,
  RecordType.NINFO,
  RecordType.AVC,
  RecordType.RESINFO,
  RecordType.WALLET,
  RecordType.CLA,
]);

/**
 * The text after the range. BIND requires quotes around data of several words (`MX "10 mail$"`): they are removed, unless the type
 * may have a text as its data and there are no quotes within it.
 */
export function templateText(scanner: EntryScanner): string {
  const { bytes, starts, ends, flags, count } = scanner;
  const last = count - 1;
  const start = starts[2] as number;
  const end = ends[last] as number;
  if (((flags[last] as number) & QUOTED) === 0) return latin1(bytes, start, end);
  const data = latin1(bytes, starts[last] as number, end);
  const type = readWord(bytes, starts[last - 1] as number, ends[last - 1] as number);
  const isText = TEXT_TYPES.has(type) && !/^\\".*\\"$/s.test(data);
  if (count < 5 || type < 0 || type > 0xffff || isText) return latin1(bytes, start, end + 1);
  const within = data.replace(/\\(.)/gs, (sequence, character) => (character === '"' ? '"' : sequence));
  return latin1(bytes, start, (starts[last] as number) - 1) + within;
}

/**
 * @param least the first number: as in CoreDNS, no form may make it negative
 * @returns the error, for a template with an invalid form
 */
export function compileTemplate(
  template: string,
  least: number,
): ((value: number) => string) | GenerateProblem {
  const parts: (string | NumberForm)[] = [];
  let literal = "";
  for (let at = 0; at < template.length; at++) {
    const character = template.charAt(at);
    if (character === "\\") {
      const next = template.charAt(at + 1);
      literal += next === "$" ? "$" : character + next;
      at++;
    } else if (character !== "$") {
      literal += character;
    } else if (template.charAt(at + 1) === "$") {
      literal += "$";
      at++;
    } else {
      parts.push(literal);
      literal = "";
      if (template.charAt(at + 1) !== "{") {
        parts.push(PLAIN);
        continue;
      }
      const close = template.indexOf("}", at);
      const form = close < 0 ? undefined : parseForm(template.slice(at + 2, close));
      const written = template.slice(at, close < 0 ? at + 20 : close + 1);
      if (form === undefined) return new GenerateProblem(`not a form such as \${0,3,d}: "${written}"`);
      if (least + form.offset < 0)
        return new GenerateProblem(`"${written}" makes a negative number of ${least}`);
      parts.push(form);
      at = close;
    }
  }
  parts.push(literal);
  return (value) => {
    let text = "";
    for (const part of parts) text += typeof part === "string" ? part : formatNumber(value, part);
    return text;
  };
}

/** The lines of a `$GENERATE`, made as they are read. */
export class GeneratedLines {
  readonly #template: (value: number) => string;
  readonly #range: GenerateRange;
  #value: number;

  constructor(template: (value: number) => string, range: GenerateRange) {
    this.#template = template;
    this.#range = range;
    this.#value = range.start;
  }

  get isTooLong(): boolean {
    return this.#template(this.#range.stop).length > MAX_LINE;
  }

  /** Refills a scanner that has consumed its octets, and sets its line ends. */
  refill(scanner: EntryScanner): void {
    const { stop, step } = this.#range;
    let text = "";
    for (; this.#value <= stop && text.length < CHUNK_OCTETS; this.#value += step)
      text += `${this.#template(this.#value)}\n`;
    const kept = scanner.bytes.subarray(scanner.at, scanner.limit);
    scanner.bytes = Buffer.concat([kept, Buffer.from(text, "latin1")]);
    scanner.limit = scanner.bytes.length;
    scanner.lineStart -= scanner.at;
    scanner.at = 0;
    scanner.final = this.#value > stop || kept.length > MAX_ENTRY_OCTETS;
  }
}

export class GenerateProblem {
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }
}

interface NumberForm {
  readonly offset: number;
  readonly width: number;
  readonly base: string;
}

const PLAIN: NumberForm = { offset: 0, width: 0, base: "d" };

function parseForm(text: string): NumberForm | undefined {
  const [, offset, width, base] = /^([-+]?\d{1,9})(?:,(\d{1,3})(?:,([doxXnN]))?)?$/.exec(text) ?? [];
  if (offset === undefined) return undefined;
  return { offset: Number(offset), width: Number(width ?? 0), base: base ?? "d" };
}

const RADIX: Readonly<Record<string, number>> = { d: 10, o: 8, x: 16, X: 16 };

function formatNumber(value: number, { offset, width, base }: NumberForm): string {
  const number = value + offset;
  const radix = RADIX[base];
  if (radix === undefined) return nibbles(number, width, base === "N");
  const digits = number.toString(radix).padStart(width, "0");
  return base === "X" ? digits.toUpperCase() : digits;
}

/**
 * The digits of the IPv6 reverse tree: least significant first, separated by dots, `width` counting both. As in BIND, a text of
 * even width ends in a dot.
 */
function nibbles(value: number, width: number, upper: boolean): string {
  let rest = value;
  let text = "";
  do {
    text += (rest & 15).toString(16);
    rest = Math.floor(rest / 16);
    if (rest > 0 || text.length < width) text += ".";
  } while (rest > 0 || text.length < width);
  return upper ? text.toUpperCase() : text;
}
