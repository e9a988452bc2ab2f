/** Octets of many small things in one buffer. Places are numbers and stay valid while the buffer grows. */
export class OctetHeap {
  bytes: Uint8Array;
  #used = 0;
  /** Octets that nothing refers to any more. */
  garbage = 0;

  constructor(capacity = 512) {
    this.bytes = new Uint8Array(capacity);
  }

  /** @returns where `length` octets are free to be written */
  allocate(length: number): number {
    const at = this.#used;
    this.#used = at + length;
    if (this.#used > this.bytes.length) this.#grow();
    return at;
  }

  /** Whether an allocation of `length` at `at` is the last one, which may be extended. */
  isLast(at: number, length: number): boolean {
    return at + length === this.#used;
  }

  get used(): number {
    return this.#used;
  }

  /** Octets of memory. */
  get size(): number {
    return this.bytes.length;
  }

  /** Makes room for as many octets in all, so that growing moves nothing before. */
  reserve(octets: number): void {
    this.bytes = reserved(this.bytes, octets, uint8);
  }

  /** A heap of its own with the same octets at the same places, and room for an eighth more. In portions. */
  async copy(pause: () => Promise<void>): Promise<OctetHeap> {
    const copy = new OctetHeap(0);
    copy.bytes = await copied(this.bytes, this.#used, uint8, pause);
    copy.#used = this.#used;
    copy.garbage = this.garbage;
    return copy;
  }

  /** Forgets everything. @returns what is to be discarded */
  clear(): Uint8Array {
    const { bytes } = this;
    this.bytes = new Uint8Array(LEAST_LENGTH);
    this.#used = 0;
    this.garbage = 0;
    return bytes;
  }

  /** Octets that can be allocated before anything has to be moved. */
  get room(): number {
    return this.bytes.length - this.#used;
  }

  /** Makes sure of {@link room} in portions, so that no allocation has to move everything. Nothing may be allocated meanwhile. */
  async makeRoom(octets: number, pause: () => Promise<void>): Promise<void> {
    if (this.room >= octets) return;
    this.bytes = await moved(
      this.bytes,
      this.#used,
      uint8,
      pause,
      grownLength(this.bytes, this.#used + octets),
    );
  }

  /** Gives back what is not in use, where that is much. Nothing may be allocated meanwhile. */
  async trim(pause: () => Promise<void>): Promise<void> {
    this.bytes = await trimmed(this.bytes, this.#used, uint8, pause);
  }

  #grow(): void {
    // Half as much again: twice would leave half of a large zone's buffer unused.
    const grown = new Uint8Array(grownLength(this.bytes, this.#used));
    grown.set(this.bytes);
    this.bytes = grown;
  }
}

const uint8 = (length: number): Uint8Array => new Uint8Array(length);

/** Half as long again, or as long as is needed. */
export function grownLength({ length }: { readonly length: number }, needed: number): number {
  return Math.max(needed, length + (length >>> 1));
}

/** There is room for one more of whatever has its fields side by side. */
const LEAST_LENGTH = 64;

/** A typed array that is as long at least, with the same beginning. */
export function reserved<T extends Int32Array | Uint8Array>(
  array: T,
  length: number,
  make: (length: number) => T,
): T {
  if (length <= array.length) return array;
  const larger = make(length);
  larger.set(array);
  return larger;
}

/** A typed array half as long again, with the same beginning. */
export function grown<T extends Int32Array | Uint8Array>(array: T, make: (length: number) => T): T {
  return reserved(array, Math.max(LEAST_LENGTH, array.length + (array.length >>> 1)), make);
}

/** The array without what lies behind `used`, where that is more than an eighth. Some room stays, so that small changes move nothing. */
export async function trimmed<T extends Int32Array | Uint8Array>(
  array: T,
  used: number,
  make: (length: number) => T,
  pause: () => Promise<void>,
): Promise<T> {
  if (array.length - used <= used >>> 3) return array;
  return await moved(array, used, make, pause, used + (used >>> 6));
}

/** Octets that are copied in some tenths of a millisecond: memory that is used for the first time is slow. */
const PORTION = 512 * 1024;

/** Frees the memory of an array that nobody refers to any more at once: V8 by itself takes its time. */
export function discard({ buffer }: Int32Array | Uint8Array): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/** As {@link copied}, in place of an array that nobody refers to any more. */
export async function moved<T extends Int32Array | Uint8Array>(
  array: T,
  used: number,
  make: (length: number) => T,
  pause: () => Promise<void>,
  length: number,
): Promise<T> {
  const copy = await copied(array, used, make, pause, length);
  discard(array);
  return copy;
}

/** The first `used` fields in an array of its own, with room for an eighth more unless `length` says otherwise. Nobody may write to them meanwhile. */
export async function copied<T extends Int32Array | Uint8Array>(
  array: T,
  used: number,
  make: (length: number) => T,
  pause: () => Promise<void>,
  length: number = Math.max(LEAST_LENGTH, used + (used >>> 3)),
): Promise<T> {
  const copy = make(length);
  const step = PORTION / array.BYTES_PER_ELEMENT;
  for (let at = 0; at < used; at += step) {
    if (at > 0) await pause();
    copy.set(array.subarray(at, Math.min(used, at + step)), at);
  }
  return copy;
}
