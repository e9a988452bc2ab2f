/**
 * Messages between a QUIC thread and the thread that it works for: many records in one message, so that a batch of queries causes
 * one wake-up.
 */

const HEAD = 16;
const FIRST_ROOM = 8 * 1024;

export class RecordWriter {
  #octets = new Uint8Array(0);
  #view = new DataView(this.#octets.buffer);
  #length = 0;

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  add(kind: number, connection: number, stream: number, payload: Uint8Array): void {
    const at = this.#length;
    this.#grow(at + HEAD + payload.length);
    this.#view.setUint32(at, kind);
    this.#view.setUint32(at + 4, connection);
    this.#view.setUint32(at + 8, stream);
    this.#view.setUint32(at + 12, payload.length);
    this.#octets.set(payload, at + HEAD);
    this.#length = at + HEAD + payload.length;
  }

  /** Takes all records so far, as octets that may be transferred, and leaves the writer empty. */
  take(): Uint8Array<ArrayBuffer> {
    const taken = this.#octets.subarray(0, this.#length);
    this.#octets = new Uint8Array(0);
    this.#view = new DataView(this.#octets.buffer);
    this.#length = 0;
    return taken;
  }

  #grow(length: number): void {
    if (length <= this.#octets.length) return;
    const larger = new Uint8Array(Math.max(length, FIRST_ROOM, this.#octets.length * 2));
    larger.set(this.#octets.subarray(0, this.#length));
    this.#octets = larger;
    this.#view = new DataView(larger.buffer);
  }
}

/** @param visit receives octets that stay valid */
export function readRecords(
  octets: Uint8Array,
  visit: (kind: number, connection: number, stream: number, payload: Uint8Array) => void,
): void {
  const view = new DataView(octets.buffer, octets.byteOffset, octets.length);
  let at = 0;
  while (at < octets.length) {
    const end = at + HEAD + view.getUint32(at + 12);
    visit(
      view.getUint32(at),
      view.getUint32(at + 4),
      view.getUint32(at + 8),
      octets.subarray(at + HEAD, end),
    );
    at = end;
  }
}

export function codeOctets(code: number): Uint8Array {
  const octets = new Uint8Array(4);
  new DataView(octets.buffer).setUint32(0, code);
  return octets;
}

export function readCode(octets: Uint8Array): number {
  return new DataView(octets.buffer, octets.byteOffset, 4).getUint32(0);
}

export const NO_PAYLOAD = new Uint8Array(0);
