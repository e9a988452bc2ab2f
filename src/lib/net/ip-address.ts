/** An address with the zone index that says which interface it belongs to (RFC 4007 section 11). */
export interface ScopedIpAddress {
  /** 4 or 16 octets in network order. */
  readonly octets: Uint8Array;
  /** The text after `%`, an interface name or number; undefined without `%`. */
  readonly zone: string | undefined;
}

/**
 * Reads an IPv4 or IPv6 address in text form.
 *
 * Strict: no surrounding space, no port, no prefix length, no zone index, no leading zeros in an IPv4 part.
 * `::ffff:192.0.2.1` stays an IPv6 address of 16 octets.
 *
 * @returns 4 or 16 octets in network order, or undefined if the text is not an address.
 */
export function parseIpAddress(text: string): Uint8Array | undefined {
  return parseRange(text, text.length);
}

/**
 * Reads an address as {@link parseIpAddress} does, and accepts a zone index on an IPv6 address (`fe80::1%eth0`),
 * which is returned beside the octets. An empty zone is refused.
 */
export function parseScopedIpAddress(text: string): ScopedIpAddress | undefined {
  const percent = text.indexOf("%");
  if (percent === -1) {
    const octets = parseRange(text, text.length);
    return octets === undefined ? undefined : { octets, zone: undefined };
  }
  if (percent === text.length - 1) return undefined;
  const octets = readIpv6(text, percent);
  return octets === undefined ? undefined : { octets, zone: text.slice(percent + 1) };
}

/** Reads a dotted-decimal IPv4 address into 4 octets; undefined if the text is not one. */
export function parseIpv4(text: string): Uint8Array | undefined {
  const octets = new Uint8Array(4);
  return readIpv4Into(octets, 0, text, 0, text.length) ? octets : undefined;
}

/**
 * Writes the 4 octets of a dotted-decimal IPv4 address at `offset`; false, with undefined contents there, if the text
 * is not one.
 */
export function parseIpv4Into(octets: Uint8Array, offset: number, text: string): boolean {
  return readIpv4Into(octets, offset, text, 0, text.length);
}

/** Reads an IPv6 address (RFC 4291 section 2.2, all three forms) into 16 octets; undefined if the text is not one. */
export function parseIpv6(text: string): Uint8Array | undefined {
  return readIpv6(text, text.length);
}

/**
 * Prints 4 octets as IPv4 and 16 as IPv6 in canonical form.
 *
 * @throws RangeError for any other number of octets.
 */
export function formatIpAddress(octets: Uint8Array): string {
  if (octets.length === 4) return formatIpv4(octets, 0);
  if (octets.length === 16) return formatIpv6(octets, 0);
  throw new RangeError(`an IP address has 4 or 16 octets, not ${octets.length}`);
}

/** Prints the 4 octets that start at `offset` in dotted-decimal form. */
export function formatIpv4(octets: Uint8Array, offset = 0): string {
  return `${octets[offset]}.${octets[offset + 1]}.${octets[offset + 2]}.${octets[offset + 3]}`;
}

/**
 * Prints the 16 octets that start at `offset` in the canonical form of RFC 5952: lower case, no leading
 * zeros, the first longest run of two or more zero groups as `::`, IPv4-mapped addresses as `::ffff:192.0.2.1`.
 */
export function formatIpv6(octets: Uint8Array, offset = 0): string {
  if (isIpv4Mapped(octets, offset)) return `::ffff:${formatIpv4(octets, offset + 12)}`;

  let runStart = -1;
  let runLength = 1;
  for (let group = 0; group < 8; ) {
    let end = group;
    while (end < 8 && groupAt(octets, offset, end) === 0) end++;
    if (end - group > runLength) {
      runStart = group;
      runLength = end - group;
    }
    group = end + 1;
  }

  let text = "";
  for (let group = 0; group < 8; group++) {
    if (group === runStart) {
      text += "::";
      group += runLength - 1;
      continue;
    }
    if (group !== 0 && group !== runStart + runLength) text += ":";
    text += groupAt(octets, offset, group).toString(16);
  }
  return text;
}

/** Whether the 16 octets that start at `offset` lie in `::ffff:0:0/96` (RFC 4291 section 2.5.5.2). */
export function isIpv4Mapped(octets: Uint8Array, offset = 0): boolean {
  for (let index = 0; index < 10; index++) if (octets[offset + index] !== 0) return false;
  return octets[offset + 10] === 0xff && octets[offset + 11] === 0xff;
}

const DOT = 0x2e;
const COLON = 0x3a;
const ZERO = 0x30;
const NINE = 0x39;

function parseRange(text: string, end: number): Uint8Array | undefined {
  // The longest IPv4 address has 15 characters, so an early colon or dot decides which of the two this is.
  for (let position = 0; position < end && position < 5; position++) {
    const code = text.charCodeAt(position);
    if (code === COLON) return readIpv6(text, end);
    if (code === DOT) {
      const octets = new Uint8Array(4);
      return readIpv4Into(octets, 0, text, 0, end) ? octets : undefined;
    }
  }
  return undefined;
}

function readIpv4Into(target: Uint8Array, at: number, text: string, start: number, end: number): boolean {
  let position = start;
  for (let part = 0; part < 4; part++) {
    if (part > 0) {
      if (position >= end || text.charCodeAt(position) !== DOT) return false;
      position++;
    }
    const partStart = position;
    let value = 0;
    while (position < end) {
      const code = text.charCodeAt(position);
      if (code < ZERO || code > NINE) break;
      value = value * 10 + (code - ZERO);
      if (value > 255) return false;
      position++;
    }
    const digits = position - partStart;
    // Some programs read "010" as 8 and others as 10, so a leading zero is refused.
    if (digits === 0 || (digits > 1 && text.charCodeAt(partStart) === ZERO)) return false;
    target[at + part] = value;
  }
  return position === end;
}

function readIpv6(text: string, end: number): Uint8Array | undefined {
  // Eight groups of four digits, or six and an IPv4 address: at most 45 characters.
  if (end < 2 || end > 45) return undefined;
  const octets = new Uint8Array(16);
  let written = 0;
  let compressedAt = -1;
  let position = 0;

  if (text.charCodeAt(0) === COLON) {
    if (text.charCodeAt(1) !== COLON) return undefined;
    compressedAt = 0;
    position = 2;
  }

  while (position < end) {
    if (written === 16) return undefined;
    const groupStart = position;
    let value = 0;
    while (position < end) {
      const digit = hexDigit(text.charCodeAt(position));
      if (digit === -1) break;
      value = value * 16 + digit;
      position++;
    }
    const digits = position - groupStart;
    if (digits === 0 || digits > 4) return undefined;

    if (position < end && text.charCodeAt(position) === DOT) {
      if (written > 12 || !readIpv4Into(octets, written, text, groupStart, end)) return undefined;
      written += 4;
      break;
    }

    octets[written++] = value >>> 8;
    octets[written++] = value & 0xff;
    if (position === end) break;
    if (text.charCodeAt(position) !== COLON) return undefined;
    position++;
    if (position === end) return undefined;
    if (text.charCodeAt(position) === COLON) {
      if (compressedAt !== -1) return undefined;
      compressedAt = written;
      position++;
    }
  }

  if (compressedAt === -1) return written === 16 ? octets : undefined;
  if (written === 16) return undefined;
  const tailLength = written - compressedAt;
  octets.copyWithin(16 - tailLength, compressedAt, written);
  octets.fill(0, compressedAt, 16 - tailLength);
  return octets;
}

function hexDigit(code: number): number {
  if (code >= ZERO && code <= NINE) return code - ZERO;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x61 + 10 : -1;
}

function groupAt(octets: Uint8Array, offset: number, group: number): number {
  return ((octets[offset + group * 2] ?? 0) << 8) | (octets[offset + group * 2 + 1] ?? 0);
}
