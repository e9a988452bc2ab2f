/** A byte heap for many small items. Offsets are numbers and stay valid while the buffer grows. */
import { readU32, writeU32 } from "../../dns/octets.ts";

/** A free place holds the offset of the next one with its length. */
const LINK_OCTETS = 4;
/** Longer items are rare, and seldom have the same length. */
const MOST_REUSED = 1024;
/** Bytes of a heap from which on places are reused: a smaller heap is copied instead. */
const LEAST_TO_REUSE = 64 * 1024;

export class OctetHeap {
  bytes: Uint8Array;
  #used = 0;
  #garbage = 0;
  /** The first free place of each length, plus one. */
  #free: Uint32Array | undefined;

  readonly #leastToReuse: number;

  /** @param leastToReuse bytes from which on places are reused */
  constructor(capacity = 512, leastToReuse: number = LEAST_TO_REUSE) {
    this.bytes = new Uint8Array(capacity);
    this.#leastToReuse = leastToReuse;
  }

  /** @returns offset of `length` free bytes */
  allocate(length: number): number {
    const free = this.#free?.[length] ?? 0;
    if (free === 0) return this.#append(length);
    const { bytes } = this;
    // A link needs four bytes.
    (this.#free as Uint32Array)[length] = readU32(bytes, free - 1);
    this.#garbage -= length;
    return free - 1;
  }

  /** Frees bytes for reuse by an allocation of the same length. */
  free(at: number, length: number): void {
    if (length <= 0) return;
    this.#garbage += length;
    if (length < LINK_OCTETS || length > MOST_REUSED || this.#used < this.#leastToReuse) return;
    this.#free ??= new Uint32Array(MOST_REUSED + 1);
    writeU32(this.bytes, at, this.#free[length] as number);
    this.#free[length] = at + 1;
  }

  /** Like {@link free}, for bytes that must not be overwritten. */
  waste(length: number): void {
    this.#garbage += length;
  }

  /** Unused bytes. */
  get garbage(): number {
    return this.#garbage;
  }

  /** Extends the last allocation; see {@link isLast}. */
  extend(length: number): void {
    this.#append(length);
  }

  #append(length: number): number {
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

  /** Bytes of memory. */
  get size(): number {
    return this.bytes.length;
  }

  /** Makes room for this many bytes in total, so that growing moves nothing before. */
  reserve(octets: number): void {
    this.bytes = reserved(this.bytes, octets, uint8);
  }

  /** A separate heap with the same bytes at the same offsets, and with room for an eighth more. In portions. */
  async copy(pause: () => Promise<void>): Promise<OctetHeap> {
    const copy = new OctetHeap(0);
    copy.bytes = await copied(this.bytes, this.#used, uint8, pause);
    copy.#used = this.#used;
    copy.#garbage = this.#garbage;
    copy.#free = this.#free?.slice();
    return copy;
  }

  /** Removes everything. @returns the array to discard */
  clear(): Uint8Array {
    const { bytes } = this;
    this.bytes = new Uint8Array(LEAST_LENGTH);
    this.#used = 0;
    this.#garbage = 0;
    this.#free = undefined;
    return bytes;
  }

  /** Bytes that can be allocated before anything has to be moved. */
  get room(): number {
    return this.bytes.length - this.#used;
  }

  /**
   * Ensures {@link room} in portions, so that no allocation has to move everything. Nothing may be allocated until the promise
   * resolves.
   */
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

  /** Frees unused memory if there is much of it. Nothing may be allocated until the promise resolves. */
  async trim(pause: () => Promise<void>): Promise<void> {
    this.bytes = await trimmed(this.bytes, this.#used, uint8, pause);
  }

  #grow(): void {
    // Half as much again: doubling would leave half of a large zone's buffer unused.
    const grown = new Uint8Array(grownLength(this.bytes, this.#used));
    grown.set(this.bytes);
    this.bytes = grown;
  }
}

const uint8 = (length: number): Uint8Array => new Uint8Array(length);

/** Half as long again, or as long as needed. */
export function grownLength({ length }: { readonly length: number }, needed: number): number {
  return Math.max(needed, length + (length >>> 1));
}

/** There is room for one more element with several fields. */
const LEAST_LENGTH = 64;

/** A typed array of at least this length, with the same beginning. */
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

/** Bytes from which on an array is moved in portions. Its unused room costs nothing, because the system commits no pages for it. */
const LARGE = 1024 * 1024;

/** The array without the part after `used`, if that is more than a quarter. Some room stays, so that changes move nothing. */
export async function trimmed<T extends Int32Array | Uint8Array>(
  array: T,
  used: number,
  make: (length: number) => T,
  pause: () => Promise<void>,
): Promise<T> {
  const isLarge = used * array.BYTES_PER_ELEMENT > LARGE;
  if (array.length - used <= used >>> (isLarge ? 2 : 3)) return array;
  return await moved(array, used, make, pause, used + (used >>> (isLarge ? 3 : 6)));
}

/** Bytes copied between two pauses: the first use of memory is slow. */
const PORTION = 512 * 1024;

/** Frees the memory of an unused array at once, without waiting for V8. */
export function discard({ buffer }: Int32Array | Uint32Array | Uint8Array): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/** Like {@link copied}, replacing an unused array. */
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

/**
 * The first `used` fields in a new array, with room for an eighth more, or of the given length. They must not be written to until
 * the promise resolves.
 */
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
