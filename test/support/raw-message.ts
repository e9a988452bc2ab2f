/** Messages built octet by octet, for cases that no encoder makes. */

export interface RawHeader {
  readonly id?: number;
  /** The second word: QR, opcode, flags, rcode. Default RD alone. */
  readonly flags?: number;
  /** Question, answer, authority, additional. Default one question. */
  readonly counts?: readonly [number, number, number, number];
}

export function rawMessage(header: RawHeader, ...parts: readonly Uint8Array[]): Buffer {
  const { id = 0x4242, flags = 0x0100, counts = [1, 0, 0, 0] } = header;
  const words = Buffer.alloc(12);
  for (const [index, word] of [id, flags, ...counts].entries()) words.writeUInt16BE(word, 2 * index);
  return Buffer.concat([words, ...parts]);
}

export function hex(digits: string): Buffer {
  return Buffer.from(digits.replaceAll(" ", ""), "hex");
}

/** The octets of a name without checks. */
export function rawName(...labels: readonly string[]): Buffer {
  return Buffer.concat([
    ...labels.flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, "latin1")]),
    Buffer.from([0]),
  ]);
}

export function rawQuestion(name: Uint8Array, type = 1, recordClass = 1): Buffer {
  const words = Buffer.alloc(4);
  words.writeUInt16BE(type, 0);
  words.writeUInt16BE(recordClass, 2);
  return Buffer.concat([name, words]);
}

export interface RawOpt {
  readonly owner?: Uint8Array;
  readonly udpSize?: number;
  readonly version?: number;
  readonly options?: Uint8Array;
  /** The value of the length field, if it is wrong. */
  readonly length?: number;
}

export function rawOpt(opt: RawOpt = {}): Buffer {
  const { owner = rawName(), udpSize = 1232, version = 0, options = Buffer.alloc(0) } = opt;
  const words = Buffer.alloc(10);
  words.writeUInt16BE(41, 0);
  words.writeUInt16BE(udpSize, 2);
  words.writeUInt8(version, 5);
  words.writeUInt16BE(opt.length ?? options.length, 8);
  return Buffer.concat([owner, words, options]);
}

export function rawOption(code: number, data: Uint8Array, length: number = data.length): Buffer {
  const words = Buffer.alloc(4);
  words.writeUInt16BE(code, 0);
  words.writeUInt16BE(length, 2);
  return Buffer.concat([words, data]);
}
