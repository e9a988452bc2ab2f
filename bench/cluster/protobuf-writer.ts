/** Writes protobuf into one buffer that grows, fields in the order of their numbers as the API server does. */

const VARINT = 0;
const LENGTH_DELIMITED = 2;

export class ProtobufWriter {
  #buffer = Buffer.allocUnsafe(256 * 1024);
  #at = 0;

  /** A copy of what was written since the last call. */
  take(): Buffer {
    const message = Buffer.from(this.#buffer.subarray(0, this.#at));
    this.#at = 0;
    return message;
  }

  /** Octets without a field around them. */
  raw(octets: Uint8Array): void {
    this.#reserve(octets.length);
    this.#buffer.set(octets, this.#at);
    this.#at += octets.length;
  }

  /** Any text of ASCII, empty ones too: the API server leaves out only what is a pointer. */
  text(number: number, text: string): void {
    this.#reserve(text.length + 12);
    this.#tag(number, LENGTH_DELIMITED);
    this.#varint(text.length);
    this.#at += this.#buffer.write(text, this.#at, "latin1");
  }

  integer(number: number, value: number): void {
    this.#reserve(12);
    this.#tag(number, VARINT);
    this.#varint(value);
  }

  truth(number: number, value: boolean): void {
    this.integer(number, value ? 1 : 0);
  }

  bytes(number: number, octets: Uint8Array): void {
    this.#reserve(12);
    this.#tag(number, LENGTH_DELIMITED);
    this.#varint(octets.length);
    this.raw(octets);
  }

  /** A message within: what `write` writes. */
  message(number: number, write: () => void): void {
    this.#reserve(12);
    this.#tag(number, LENGTH_DELIMITED);
    const lengthAt = this.#at++;
    write();
    const length = this.#at - lengthAt - 1;
    if (length < 0x80) {
      this.#buffer[lengthAt] = length;
      return;
    }
    // The length takes more octets than the one that was left for it.
    this.#reserve(4);
    const lengthOctets = varintLength(length);
    this.#buffer.copyWithin(lengthAt + lengthOctets, lengthAt + 1, this.#at);
    this.#at = lengthAt;
    this.#varint(length);
    this.#at += length;
  }

  #tag(number: number, wireType: number): void {
    this.#varint(number * 8 + wireType);
  }

  #varint(value: number): void {
    let rest = value;
    for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) this.#buffer[this.#at++] = (rest % 0x80) | 0x80;
    this.#buffer[this.#at++] = rest;
  }

  #reserve(octets: number): void {
    if (this.#at + octets <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#at + octets));
    this.#buffer.copy(larger, 0, 0, this.#at);
    this.#buffer = larger;
  }
}

function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 0x80)) length++;
  return length;
}
