/** Numbers with names: classes, rcodes, opcodes, header flags (IANA DNS parameters). */

export const RecordClass = { IN: 1, CH: 3, HS: 4, NONE: 254, ANY: 255 } as const;

export const Rcode = {
  NOERROR: 0,
  FORMERR: 1,
  SERVFAIL: 2,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
  YXDOMAIN: 6,
  YXRRSET: 7,
  NXRRSET: 8,
  NOTAUTH: 9,
  NOTZONE: 10,
  DSOTYPENI: 11,
  BADVERS: 16,
  BADKEY: 17,
  BADTIME: 18,
  BADMODE: 19,
  BADNAME: 20,
  BADALG: 21,
  BADTRUNC: 22,
  BADCOOKIE: 23,
} as const;

export const Opcode = { QUERY: 0, IQUERY: 1, STATUS: 2, NOTIFY: 4, UPDATE: 5, DSO: 6 } as const;

/** Bits of the second 16-bit word of the header (RFC 1035 section 4.1.1, RFC 4035 section 3.1.6). */
export const Flag = {
  QR: 0x8000,
  AA: 0x0400,
  TC: 0x0200,
  RD: 0x0100,
  RA: 0x0080,
  Z: 0x0040,
  AD: 0x0020,
  CD: 0x0010,
} as const;

export function opcodeOf(flags: number): number {
  return (flags >>> 11) & 0xf;
}

/** Name of an rcode as in CoreDNS's metrics and logs; a number without a name stays a number. */
export function rcodeName(rcode: number): string {
  return RCODE_NAMES.get(rcode) ?? String(rcode);
}

/** The number of a response code such as `NXDOMAIN`; `undefined` for another word. */
export function parseRcode(text: string): number | undefined {
  const upper = upperCaseAscii(text);
  if (isRcodeName(upper)) return Rcode[upper];
  return /^\d+$/.test(text) && Number(text) <= 4095 ? Number(text) : undefined;
}

/** `IN`, `CH`, …; RFC 3597 section 5 for those without a name. */
export function className(recordClass: number): string {
  return CLASS_NAMES.get(recordClass) ?? `CLASS${recordClass}`;
}

/** The number of a class such as `IN` or `CLASS3`; `undefined` for another word. */
export function parseClass(text: string): number | undefined {
  const upper = upperCaseAscii(text);
  for (const [name, number] of Object.entries(RecordClass)) if (name === upper) return number;
  return parsePrefixedNumber(upper, "CLASS");
}

/** Mnemonics have ASCII letters; `toUpperCase` alone would also map other letters to ASCII. */
export function upperCaseAscii(text: string): string {
  return text.replace(/[a-z]+/g, (letters) => letters.toUpperCase());
}

/** The number in `TYPE123` or `CLASS123`. */
export function parsePrefixedNumber(text: string, prefix: string): number | undefined {
  if (!text.startsWith(prefix)) return undefined;
  const digits = text.slice(prefix.length);
  return /^\d{1,5}$/.test(digits) && Number(digits) <= 0xffff ? Number(digits) : undefined;
}

function isRcodeName(text: string): text is keyof typeof Rcode {
  return Object.hasOwn(Rcode, text);
}

const RCODE_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(Rcode).map(([name, number]) => [number, name]),
);
const CLASS_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(RecordClass).map(([name, number]) => [number, name]),
);
