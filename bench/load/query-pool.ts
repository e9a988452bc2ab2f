/** Queries read from a file in dnsperf's form, encoded once, so that a generator only copies them. */
import { readFileSync } from "node:fs";
import { encodeMessage, makeQuery, Name, parseRecordType } from "../../src/dns/index.ts";

export class QueryPool {
  readonly #bytes: Uint8Array;
  /** Where each query begins, and at last where the last one ends. */
  readonly #offsets: Uint32Array;

  private constructor(bytes: Uint8Array, offsets: Uint32Array) {
    this.#bytes = bytes;
    this.#offsets = offsets;
  }

  static fromFile(path: string): QueryPool {
    return QueryPool.parse(readFileSync(path, "latin1"));
  }

  /**
   * @param text lines of a name and a type
   * @throws RangeError for text without queries or with an unknown type
   */
  static parse(text: string): QueryPool {
    const queries = text
      .split("\n")
      .filter((line) => line !== "")
      .map(encodeLine);
    if (queries.length === 0) throw new RangeError("no queries");
    const offsets = new Uint32Array(queries.length + 1);
    for (const [index, query] of queries.entries()) offsets[index + 1] = (offsets[index] ?? 0) + query.length;
    return new QueryPool(Buffer.concat(queries), offsets);
  }

  get size(): number {
    return this.#offsets.length - 1;
  }

  /** The octets of a query with id 0; after the last one comes the first one again. Not to be changed. */
  query(index: number): Uint8Array {
    const at = index % this.size;
    return this.#bytes.subarray(this.#offsets[at], this.#offsets[at + 1]);
  }

  /**
   * Writes a query with its id.
   * @returns its length
   */
  write(index: number, id: number, target: Uint8Array, offset = 0): number {
    // Octet by octet: a view for each query would keep the garbage collector busy, and the clock is running.
    const at = index % this.size;
    const start = this.#offsets[at] ?? 0;
    const length = (this.#offsets[at + 1] ?? start) - start;
    for (let octet = 2; octet < length; octet++) target[offset + octet] = this.#bytes[start + octet] ?? 0;
    target[offset] = id >>> 8;
    target[offset + 1] = id;
    return length;
  }
}

function encodeLine(line: string): Uint8Array {
  const [name = "", typeName = ""] = line.split(" ");
  const type = parseRecordType(typeName);
  if (type === undefined) throw new RangeError(`not a query: "${line}"`);
  return encodeMessage(makeQuery({ name: Name.parse(name), type }));
}
