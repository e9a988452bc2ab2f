/** Octets of many small things in one buffer. Places are numbers and stay valid while the buffer grows. */
import { readU32, writeU32 } from "../../dns/octets.ts";

/** A free place holds the number of the next one of its length. */
const LINK_OCTETS = 4;
/** Longer ones are rare, and hardly two of a length. */
const MOST_REUSED = 1024;
/** Octets of a heap from which on places are given out again: a smaller one is copied in no time. */
const LEAST_TO_REUSE = 64 * 1024;

export class OctetHeap {
  bytes: Uint8Array;
  #used = 0;
  #garbage = 0;
  /** The first free place of each length, plus one. */
  #free: Uint32Array | undefined;

  readonly #leastToReuse: number;

  /** @param leastToReuse octets from which on places are given out again */
  constructor(capacity = 512, leastToReuse: number = LEAST_TO_REUSE) {
    this.bytes = new Uint8Array(capacity);
    this.#leastToReuse = leastToReuse;
  }

  /** @returns where `length` octets are free to be written */
  allocate(length: number): number {
    const free = this.#free?.[length] ?? 0;
    if (free === 0) return this.#append(length);
    const { bytes } = this;
    // Four octets are as many as a link has.
    (this.#free as Uint32Array)[length] = readU32(bytes, free - 1);
    this.#garbage -= length;
    return free - 1;
  }

  /** Says that nothing refers to these octets any more: they are given to who asks for as many. */
  free(at: number, length: number): void {
    if (length <= 0) return;
    this.#garbage += length;
    if (length < LINK_OCTETS || length > MOST_REUSED || this.#used < this.#leastToReuse) return;
    this.#free ??= new Uint32Array(MOST_REUSED + 1);
    writeU32(this.bytes, at, this.#free[length] as number);
    this.#free[length] = at + 1;
  }

  /** As {@link free}, for octets that stay as they are. */
  waste(length: number): void {
    this.#garbage += length;
  }

  /** Octets that nothing refers to any more. */
  get garbage(): number {
    return this.#garbage;
  }

  /** Lengthens what was allocated last; see {@link isLast}. */
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
    copy.#garbage = this.#garbage;
    copy.#free = this.#free?.slice();
    return copy;
  }

  /** Forgets everything. @returns what is to be discarded */
  clear(): Uint8Array {
    const { bytes } = this;
    this.bytes = new Uint8Array(LEAST_LENGTH);
    this.#used = 0;
    this.#garbage = 0;
    this.#free = undefined;
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

/** Octets from which on an array is moved in portions, and its spare room costs nothing before it is used: the system has no page for it. */
const LARGE = 1024 * 1024;

/** The array without what lies behind `used`, where that is more than a quarter. Some room stays, so that changes move nothing. */
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

/** Octets that are copied in some tenths of a millisecond: memory that is used for the first time is slow. */
const PORTION = 512 * 1024;

/** Frees the memory of an array that nobody refers to any more at once: V8 by itself takes its time. */
export function discard({ buffer }: Int32Array | Uint32Array | Uint8Array): void {
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
