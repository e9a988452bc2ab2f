/**
 * Hands out parts of one buffer, one after the other. Two threads that take the same parts in the same order look at the same memory.
 *
 * The buffer is a `SharedArrayBuffer` even where one thread is alone: the kernel gives it pages when they are first written to, so one that
 * is large enough for the worst day costs nothing on a quiet one, and V8 neither counts it as garbage to come nor walks it.
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

/** Octets of a part, with what lies between it and the next: parts begin where a line of the processor's cache begins. */
export function roundUp(octets: number): number {
  return Math.ceil(octets / LINE) * LINE;
}

const LINE = 64;
