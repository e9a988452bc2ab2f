/**
 * Divides one buffer into parts, in order. Two threads that take the same parts in the same order see the same
 * memory.
 *
 * The buffer is a `SharedArrayBuffer` even for a single thread: the kernel allocates its pages at the first write, so
 * a buffer that is large enough for the worst case costs nothing until then, and V8 neither counts it towards the
 * heap nor scans it.
 */
export class SharedParts {
  readonly buffer: SharedArrayBuffer;
  #at = 0;

  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer;
  }

  int32(length: number): Int32Array {
    return new Int32Array(this.buffer, this.#take(4 * length), length);
  }

  octets(length: number): Uint8Array {
    return new Uint8Array(this.buffer, this.#take(length), length);
  }

  /** Both views of the same part. */
  words(length: number): { readonly words: Int32Array; readonly octets: Uint8Array } {
    const at = this.#take(4 * length);
    return {
      words: new Int32Array(this.buffer, at, length),
      octets: new Uint8Array(this.buffer, at, 4 * length),
    };
  }

  #take(octets: number): number {
    const at = this.#at;
    this.#at = at + roundUp(octets);
    return at;
  }
}

/** Octets of a part, with padding: parts begin at a cache line of the processor. */
export function roundUp(octets: number): number {
  return Math.ceil(octets / LINE) * LINE;
}

const LINE = 64;
