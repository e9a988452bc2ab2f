/** The part of MessagePack that spans need (https://github.com/msgpack/msgpack/blob/master/spec.md). */

export class MessagePackWriter {
  #bytes = Buffer.alloc(1024);
  #end = 0;

  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#end);
  }

  array(length: number): this {
    return this.#octets(arrayHead(length));
  }

  map(length: number): this {
    this.#room(3);
    if (length < 16) this.#end = this.#bytes.writeUInt8(0x80 | length, this.#end);
    else {
      this.#end = this.#bytes.writeUInt8(0xde, this.#end);
      this.#end = this.#bytes.writeUInt16BE(length, this.#end);
    }
    return this;
  }

  /** A map of the defined values. */
  table<T>(values: Readonly<Record<string, T | undefined>>, write: (value: T) => void): void {
    const present = Object.entries(values).filter(([, value]) => value !== undefined);
    this.map(present.length);
    for (const [key, value] of present) {
      this.text(key);
      if (value !== undefined) write(value);
    }
  }

  entry(key: string, value: string): void {
    this.text(key).text(value);
  }

  text(text: string): this {
    const octets = Buffer.from(text);
    this.#room(5);
    if (octets.length < 32) this.#end = this.#bytes.writeUInt8(0xa0 | octets.length, this.#end);
    else {
      this.#end = this.#bytes.writeUInt8(0xdb, this.#end);
      this.#end = this.#bytes.writeUInt32BE(octets.length, this.#end);
    }
    return this.#octets(octets);
  }

  /** Unsigned, the low 64 bits of hexadecimal digits. */
  id(digits: string): void {
    this.#room(9);
    this.#end = this.#bytes.writeUInt8(0xcf, this.#end);
    this.#end = this.#bytes.writeBigUInt64BE(BigInt(`0x${digits.slice(-16)}`), this.#end);
  }

  /** Signed, in 64 bits. */
  integer(value: bigint): void {
    this.#room(9);
    this.#end = this.#bytes.writeUInt8(0xd3, this.#end);
    this.#end = this.#bytes.writeBigInt64BE(value, this.#end);
  }

  double(value: number): void {
    this.#room(9);
    this.#end = this.#bytes.writeUInt8(0xcb, this.#end);
    this.#end = this.#bytes.writeDoubleBE(value, this.#end);
  }

  #octets(octets: Uint8Array): this {
    this.#room(octets.length);
    this.#bytes.set(octets, this.#end);
    this.#end += octets.length;
    return this;
  }

  #room(octets: number): void {
    if (this.#end + octets <= this.#bytes.length) return;
    const larger = Buffer.alloc(Math.max(2 * this.#bytes.length, this.#end + octets));
    larger.set(this.#bytes);
    this.#bytes = larger;
  }
}

export function arrayHead(length: number): Uint8Array {
  const head = Buffer.alloc(5);
  head[0] = 0xdd;
  head.writeUInt32BE(length, 1);
  return head;
}
