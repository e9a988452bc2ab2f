/**
 * `$GENERATE START-STOP[/STEP] LHS [TTL] [CLASS] TYPE RHS`, as BIND has it: a line for each number, in which `$` stands for the number and
 * `${OFFSET[,WIDTH[,BASE]]}` for another form of it. `\$` is a dollar sign.
 */
import { RecordType } from "../type-names.ts";
import { type EntryScanner, QUOTED } from "./entry-scanner.ts";
import { latin1, readWord } from "./words.ts";

export interface GenerateRange {
  readonly start: number;
  readonly stop: number;
  readonly step: number;
}

/** More lines than that are a slip of the pen: CoreDNS stops at the same number. */
const MAX_LINES = 65_536;
/** Characters of a line. BIND allows 2,048. */
const MAX_LINE = 16_384;
/** Octets of lines that are made at one time. */
const CHUNK_OCTETS = 16_384;
/** An entry that goes on for longer than that has a parenthesis that is never closed. */
const MAX_ENTRY_OCTETS = 1024 * 1024;

/** @returns what is wrong with it, for text that is no range */
export function parseRange(text: string): GenerateRange | string {
  const [, first, last, every] = /^(\d{1,10})-(\d{1,10})(?:\/\+?(\d{1,10}))?$/.exec(text) ?? [];
  if (first === undefined || last === undefined) return `not a range such as 1-10 or 1-10/2: "${text}"`;
  const [start, stop, step] = [Number(first), Number(last), Number(every ?? 1)];
  if (start > stop) return `a range must not end before it begins: "${text}"`;
  if (step === 0) return `the step of a range must be 1 at least: "${text}"`;
  if ((stop - start) / step >= MAX_LINES) return `a range of more than ${MAX_LINES} numbers: "${text}"`;
  return { start, stop, step };
}

/** Types whose data can be one text between quotes. CoreDNS takes it for one, BIND for what is to be read once more. */
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
 * What is written behind the range. BIND wants data of several words between quotes (`MX "10 mail$"`): there they are taken away, unless the
 * type may have a text as its data and no quotes stand within it.
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
 * @param least the first number: with CoreDNS as well, no form may make a negative one of it
 * @returns what is wrong with the template, for one with a faulty form
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

  /** Gives more to a scanner that has read what there was, and tells it where the lines end. */
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
 * The digits of the reverse tree of IPv6: least significant first, a dot between them, `width` counting both. As with BIND, the text of an even width
 * ends in a dot.
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
