/** Header, question and OPT of a query, read from its octets. */
import { Flag, opcodeOf } from "../../dns/numbers.ts";
import { octetAt, readU16 } from "../../dns/octets.ts";
import { isSigned, type MessageShape, nameEndOf, optOffsetOf } from "./message-shape.ts";

/** Small numbers share a field: thousands of queries may be pending, and each cache hit makes one. */
export class QueryHead {
  /** The message. Valid until the handler returns, or permanently after `Query.detach`. */
  bytes: Uint8Array;
  /** Id and flags. */
  readonly #head: number;
  /** Type and class. */
  readonly #kind: number;
  readonly #shape: MessageShape;

  constructor(bytes: Uint8Array, shape: MessageShape) {
    this.bytes = bytes;
    this.#head = (readU16(bytes, 0) << 16) | readU16(bytes, 2);
    const nameEnd = nameEndOf(shape);
    this.#kind = (readU16(bytes, nameEnd) << 16) | readU16(bytes, nameEnd + 2);
    this.#shape = shape;
  }

  /** The id of the message, which the reply repeats. */
  get id(): number {
    return this.#head >>> 16;
  }

  /** The second header word: QR, opcode, flags, rcode. */
  get flags(): number {
    return this.#head & 0xffff;
  }

  /** The type of the question as a number: compare it with `RecordType`. */
  get type(): number {
    return this.#kind >>> 16;
  }

  /** The class of the question as a number: compare it with `RecordClass`. */
  get class(): number {
    return this.#kind & 0xffff;
  }

  /** End of the question's name, root octet included; it begins at octet 12. */
  get nameEnd(): number {
    return nameEndOf(this.#shape);
  }

  /** Offset of OPT's type, -1 if the client sent none. */
  get optOffset(): number {
    return optOffsetOf(this.#shape);
  }

  /** Whether the message ends with TSIG, at `tsigOffset`. */
  get isSigned(): boolean {
    return isSigned(this.#shape);
  }

  /** End of the question section, up to which every reply repeats the query. */
  get questionEnd(): number {
    return this.nameEnd + 4;
  }

  /** The operation: 0 for a query, see `Opcode`. */
  get opcode(): number {
    return opcodeOf(this.flags);
  }

  /** Whether the client sent OPT (RFC 6891). */
  get hasEdns(): boolean {
    return this.optOffset >= 0;
  }

  /** UDP payload size that the client advertises, 512 without OPT (RFC 6891 section 6.2.5). */
  get udpSize(): number {
    return this.optOffset < 0 ? 512 : Math.max(512, readU16(this.bytes, this.optOffset + 2));
  }

  /** DO: the client wants DNSSEC records (RFC 3225). */
  get dnssecOk(): boolean {
    return this.optOffset >= 0 && (octetAt(this.bytes, this.optOffset + 6) & 0x80) !== 0;
  }

  /** With DO: the client accepts NXDOMAIN with a compact denial (CO, RFC 9824 section 5.1). */
  get compactOk(): boolean {
    return this.optOffset >= 0 && (octetAt(this.bytes, this.optOffset + 6) & 0xc0) === 0xc0;
  }

  /** The version of EDNS, 0 without OPT. */
  get ednsVersion(): number {
    return this.optOffset < 0 ? 0 : octetAt(this.bytes, this.optOffset + 5);
  }

  /** RD: the client asks for names of other servers, too. */
  get recursionDesired(): boolean {
    return (this.flags & Flag.RD) !== 0;
  }

  /** CD: the client validates on its own (RFC 4035 section 3.2.2). */
  get checkingDisabled(): boolean {
    return (this.flags & Flag.CD) !== 0;
  }

  /** AD: the client understands that bit in replies (RFC 6840 section 5.7). */
  get authenticData(): boolean {
    return (this.flags & Flag.AD) !== 0;
  }
}
