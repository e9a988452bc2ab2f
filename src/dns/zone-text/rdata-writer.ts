/**
 * Encodes RDATA from the tokens of an entry to uncompressed wire form. Common zone types go from octets to octets; all others go
 * through their row of the record table.
 */
import { parseIpv6 } from "../../lib/net/ip-address.ts";
import { Name } from "../name.ts";
import { MAX_STRING_OCTETS } from "../octet-fields.ts";
import { octetAt, writeU16 } from "../octets.ts";
import { PresentationError, type PresentationToken, RdataScanner } from "../rdata-scanner.ts";
import { isOpaque } from "../record-kind.ts";
import { recordKind } from "../record-table.ts";
import { parseData } from "../resource-record.ts";
import { RecordType } from "../type-names.ts";
import { WireError } from "../wire-reader.ts";
import { MAX_MESSAGE_OCTETS, WireWriter } from "../wire-writer.ts";
import { ADJACENT, type EntryScanner, QUOTED } from "./entry-scanner.ts";
import {
  escapedOctet,
  escapeLength,
  isDigit,
  latin1,
  NAME_ROOM,
  nameProblem,
  readNumber,
  utf8,
  writeName,
} from "./words.ts";

/** Owner, type, class, TTL and length take some of the 65,535 octets of a message. */
const MAX_RDATA_OCTETS = MAX_MESSAGE_OCTETS;

const TOO_LONG = "RDATA longer than 65535 octets";
const FAILED = -1;

export class RdataWriter {
  readonly octets: Uint8Array = new Uint8Array(MAX_RDATA_OCTETS + NAME_ROOM);
  /** Place of the error after {@link write} failed: the token, or the number of tokens for the end of the entry. */
  faultToken = 0;
  faultReason = "";
  #length = 0;

  /** @returns the length of RDATA in {@link octets}, -1 if the text is invalid */
  write(entry: EntryScanner, first: number, type: number, origin: Uint8Array): number {
    this.#length = 0;
    if (first < entry.count && isGenericForm(entry, first))
      return this.#writeByTable(entry, first, type, origin);
    switch (type) {
      case RecordType.A:
        return this.#end(entry, this.#ipv4(entry, first));
      case RecordType.AAAA:
        return this.#end(entry, this.#ipv6(entry, first));
      case RecordType.NS:
      case RecordType.CNAME:
      case RecordType.PTR:
      case RecordType.DNAME:
        return this.#end(entry, this.#name(entry, first, origin));
      case RecordType.MX:
        return this.#end(entry, this.#name(entry, this.#numbers(entry, first, 1), origin));
      case RecordType.SRV:
        return this.#end(entry, this.#name(entry, this.#numbers(entry, first, 3), origin));
      case RecordType.TXT:
      case RecordType.SPF:
        return this.#texts(entry, first);
      default:
        return this.#writeByTable(entry, first, type, origin);
    }
  }

  /** Each step takes the index of a token and returns the next one, or FAILED. */
  #end(entry: EntryScanner, next: number): number {
    if (next === FAILED) return FAILED;
    return next < entry.count ? this.#fail(next, `unexpected "${tokenText(entry, next)}"`) : this.#length;
  }

  #name(entry: EntryScanner, token: number, origin: Uint8Array): number {
    if (token === FAILED) return FAILED;
    if (token >= entry.count) return this.#fail(token, "text ends where a domain name is expected");
    const end = writeName(
      entry.bytes,
      octetAt32(entry.starts, token),
      octetAt32(entry.ends, token),
      this.octets,
      this.#length,
      origin,
    );
    if (end < 0)
      return this.#fail(token, `not a domain name: "${tokenText(entry, token)}": ${nameProblem(end)}`);
    this.#length = end;
    return token + 1;
  }

  #numbers(entry: EntryScanner, first: number, count: number): number {
    for (let token = first; token < first + count; token++) {
      if (token >= entry.count) return this.#fail(token, "text ends where a number of 16 bits is expected");
      const value = readNumber(
        entry.bytes,
        octetAt32(entry.starts, token),
        octetAt32(entry.ends, token),
        65_535,
      );
      if (value < 0)
        return this.#fail(
          token,
          `a number of 16 bits must be from 0 to 65535, not "${tokenText(entry, token)}"`,
        );
      writeU16(this.octets, this.#length, value);
      this.#length += 2;
    }
    return first + count;
  }

  #ipv4(entry: EntryScanner, token: number): number {
    if (token >= entry.count) return this.#fail(token, "text ends where an IPv4 address is expected");
    const { bytes } = entry;
    const end = octetAt32(entry.ends, token);
    let at = octetAt32(entry.starts, token);
    for (let part = 0; part < 4; part++) {
      const start = at;
      let value = 0;
      for (; at < end && isDigit(octetAt(bytes, at)); at++) value = value * 10 + (octetAt(bytes, at) - 0x30);
      const digits = at - start;
      const stops = part === 3 ? at === end : at < end && octetAt(bytes, at) === 0x2e;
      // "010" is 8 to some programs and 10 to others.
      if (
        digits === 0 ||
        digits > 3 ||
        value > 255 ||
        !stops ||
        (digits > 1 && octetAt(bytes, start) === 0x30)
      )
        return this.#fail(token, `not an IPv4 address: "${tokenText(entry, token)}"`);
      this.octets[part] = value;
      at++;
    }
    this.#length = 4;
    return token + 1;
  }

  #ipv6(entry: EntryScanner, token: number): number {
    if (token >= entry.count) return this.#fail(token, "text ends where an IPv6 address is expected");
    const octets = parseIpv6(tokenText(entry, token));
    if (octets === undefined) return this.#fail(token, `not an IPv6 address: "${tokenText(entry, token)}"`);
    this.octets.set(octets);
    this.#length = 16;
    return token + 1;
  }

  /** A text longer than one character string becomes several, as in CoreDNS: DKIM keys are often written in one piece. */
  #texts(entry: EntryScanner, first: number): number {
    if (first >= entry.count) return this.#fail(first, "text ends where a character string is expected");
    const { bytes } = entry;
    const { octets } = this;
    let to = 0;
    for (let token = first; token < entry.count; token++) {
      const end = octetAt32(entry.ends, token);
      let lengthAt = to++;
      for (let at = octetAt32(entry.starts, token); at < end; at++) {
        let octet = octetAt(bytes, at);
        if (octet === 0x5c) {
          octet = escapedOctet(bytes, at + 1, end);
          if (octet < 0) return this.#fail(token, `bad escape in "${tokenText(entry, token)}"`);
          at += escapeLength(bytes, at + 1, end);
        }
        if (to - lengthAt > MAX_STRING_OCTETS) {
          octets[lengthAt] = MAX_STRING_OCTETS;
          lengthAt = to++;
        }
        if (to >= MAX_RDATA_OCTETS) return this.#fail(token, TOO_LONG);
        octets[to++] = octet;
      }
      octets[lengthAt] = to - lengthAt - 1;
      if (to > MAX_RDATA_OCTETS) return this.#fail(token, TOO_LONG);
    }
    return to;
  }

  #writeByTable(entry: EntryScanner, first: number, type: number, origin: Uint8Array): number {
    const tokens: PresentationToken[] = [];
    for (let token = first; token < entry.count; token++) {
      const flags = octetAt(entry.flags, token);
      // The column is the token's number, which identifies its place. 1 stands for the end of an empty text.
      tokens.push({
        text: latin1(entry.bytes, octetAt32(entry.starts, token), octetAt32(entry.ends, token)),
        quoted: (flags & QUOTED) !== 0,
        adjacent: (flags & ADJACENT) !== 0,
        column: token + 2,
      });
    }
    try {
      const data = parseData(new RdataScanner("", tokens, 0, Name.fromCheckedWire(origin)), type);
      const writer = new WireWriter({ capacity: 256, limit: MAX_RDATA_OCTETS, compress: false });
      if (isOpaque(data)) writer.octets(data.octets);
      else recordKind(type)?.writeData(writer, data);
      const octets = writer.finish();
      this.octets.set(octets);
      return octets.length;
    } catch (error) {
      if (error instanceof PresentationError)
        return this.#fail(error.column < 2 ? entry.count : error.column - 2, error.reason);
      if (error instanceof WireError || error instanceof RangeError || error instanceof TypeError)
        return this.#fail(first, error.message);
      throw error;
    }
  }

  #fail(token: number, reason: string): number {
    this.faultToken = token;
    this.faultReason = reason;
    return FAILED;
  }
}

/** RFC 3597 section 5: `\# LENGTH HEX`. */
function isGenericForm(entry: EntryScanner, token: number): boolean {
  const start = octetAt32(entry.starts, token);
  return (
    octetAt32(entry.ends, token) - start === 2 &&
    octetAt(entry.bytes, start) === 0x5c &&
    octetAt(entry.bytes, start + 1) === 0x23 &&
    (octetAt(entry.flags, token) & QUOTED) === 0
  );
}

/** The token as spelled in its file. */
export function tokenText(entry: EntryScanner, token: number): string {
  const start = octetAt32(entry.starts, token);
  const end = octetAt32(entry.ends, token);
  for (let at = start; at < end; at++) {
    if (octetAt(entry.bytes, at) >= 0x80) return utf8(entry.bytes, start, end);
  }
  return latin1(entry.bytes, start, end);
}

function octetAt32(places: Int32Array, index: number): number {
  return places[index] as number;
}
