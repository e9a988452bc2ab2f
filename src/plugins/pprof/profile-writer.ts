/** The format of pprof (google/pprof, proto/profile.proto): a protocol buffer, compressed with gzip. */
import { gzipSync } from "node:zlib";

export interface ProfileFrame {
  readonly functionName: string;
  readonly url: string;
  /** From 0, as in V8; negative if unknown. */
  readonly lineNumber: number;
}

export interface ProfileSample {
  /** Innermost first. */
  readonly stack: readonly ProfileFrame[];
  /** One value for each of {@link ProfileContent.sampleTypes}. */
  readonly values: readonly number[];
}

export interface ValueType {
  readonly type: string;
  readonly unit: string;
}

export interface ProfileContent {
  readonly sampleTypes: readonly ValueType[];
  readonly samples: readonly ProfileSample[];
  readonly periodType: ValueType;
  readonly period: number;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** Milliseconds. */
  readonly duration: number;
}

export function encodeProfile(content: ProfileContent): Buffer {
  return gzipSync(new ProfileTables().encode(content));
}

/** Field numbers of the message `Profile`. */
const Field = {
  SAMPLE_TYPE: 1,
  SAMPLE: 2,
  LOCATION: 4,
  FUNCTION: 5,
  STRING_TABLE: 6,
  TIME_NANOS: 9,
  DURATION_NANOS: 10,
  PERIOD_TYPE: 11,
  PERIOD: 12,
} as const;

/** Strings, functions and locations, each of which is written once and referenced by index. */
class ProfileTables {
  readonly #strings = new Map<string, number>([["", 0]]);
  readonly #functions = new Map<string, number>();
  readonly #locations = new Map<string, number>();
  readonly #out = new MessageWriter();

  encode(content: ProfileContent): Uint8Array {
    const out = this.#out;
    for (const type of content.sampleTypes) out.message(Field.SAMPLE_TYPE, this.#valueType(type));
    for (const { stack, values } of content.samples) {
      const sample = new MessageWriter();
      sample.packed(
        1,
        stack.map((frame) => this.#location(frame)),
      );
      sample.packed(2, values);
      out.message(Field.SAMPLE, sample);
    }
    out.message(Field.PERIOD_TYPE, this.#valueType(content.periodType));
    out.number(Field.PERIOD, content.period);
    out.number(Field.TIME_NANOS, Math.round(content.startedAt) * 1_000_000);
    out.number(Field.DURATION_NANOS, Math.round(content.duration * 1_000_000));
    for (const text of this.#strings.keys()) out.text(Field.STRING_TABLE, text);
    return out.finish();
  }

  #string(text: string): number {
    let index = this.#strings.get(text);
    if (index === undefined) {
      index = this.#strings.size;
      this.#strings.set(text, index);
    }
    return index;
  }

  #valueType({ type, unit }: ValueType): MessageWriter {
    const message = new MessageWriter();
    message.number(1, this.#string(type));
    message.number(2, this.#string(unit));
    return message;
  }

  #location(frame: ProfileFrame): number {
    const key = `${frame.functionName}\n${frame.url}\n${frame.lineNumber}`;
    const known = this.#locations.get(key);
    if (known !== undefined) return known;
    const id = this.#locations.size + 1;
    this.#locations.set(key, id);
    const line = new MessageWriter();
    line.number(1, this.#function(frame));
    line.number(2, frame.lineNumber + 1);
    const location = new MessageWriter();
    location.number(1, id);
    location.message(4, line);
    this.#out.message(Field.LOCATION, location);
    return id;
  }

  #function({ functionName, url, lineNumber }: ProfileFrame): number {
    const key = `${functionName}\n${url}\n${lineNumber}`;
    const known = this.#functions.get(key);
    if (known !== undefined) return known;
    const id = this.#functions.size + 1;
    this.#functions.set(key, id);
    const name = this.#string(functionName === "" ? "(anonymous)" : functionName);
    const message = new MessageWriter();
    message.number(1, id);
    message.number(2, name);
    message.number(3, name);
    message.number(4, this.#string(url));
    message.number(5, lineNumber + 1);
    this.#out.message(Field.FUNCTION, message);
    return id;
  }
}

/** Fields of one protocol buffer message, in the order of writing. */
class MessageWriter {
  readonly #parts: Uint8Array[] = [];

  /** Zero is omitted because it is the default. */
  number(field: number, value: number): void {
    if (value <= 0) return;
    this.#parts.push(varint(field * 8), varint(value));
  }

  text(field: number, text: string): void {
    this.#octets(field, Buffer.from(text));
  }

  packed(field: number, values: readonly number[]): void {
    this.#octets(field, Buffer.concat(values.map(varint)));
  }

  message(field: number, message: MessageWriter): void {
    this.#octets(field, message.finish());
  }

  finish(): Uint8Array {
    return Buffer.concat(this.#parts);
  }

  #octets(field: number, octets: Uint8Array): void {
    this.#parts.push(varint(field * 8 + 2), varint(octets.length), octets);
  }
}

/** Whole numbers up to 2^53; times in nanoseconds are larger. */
function varint(value: number): Uint8Array {
  const octets: number[] = [];
  let rest = BigInt(Math.max(0, Math.round(value)));
  while (rest > 127n) {
    octets.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  octets.push(Number(rest));
  return Uint8Array.from(octets);
}
