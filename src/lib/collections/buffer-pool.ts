/**
 * A pool of large buffers. To V8 such a buffer is hardly more than the small object in front of it, so it collects
 * them only after many megabytes of them were used once; and the freed memory is fragmented in the heap of the C
 * library.
 */

/** Bytes up to which a new buffer, or a part of Node's pool, costs less than a pooled one. */
export const LEAST_POOLED = 4096;

/** Sizes are multiples of this: no buffer is more than twice the requested size. */
const STEP = 8 * 1024;
/** Default limit of free bytes. */
const USUAL_SPARE = 2 * 1024 * 1024;

export class BufferPool {
  /** By size, in steps. */
  readonly #free: PooledBuffer[][] = [];
  readonly #spare: number;
  #freeOctets = 0;

  /** @param spare bytes that may be free; returned buffers beyond that are left to the garbage collector */
  constructor(spare: number = USUAL_SPARE) {
    this.#spare = spare;
  }

  /** Free bytes. */
  get freeOctets(): number {
    return this.#freeOctets;
  }

  /**
   * A buffer of at least this size, with arbitrary contents. A buffer that is not returned is garbage-collected as
   * usual.
   */
  take(octets: number): PooledBuffer {
    const steps = Math.ceil(octets / STEP);
    const known = this.#free[steps]?.pop();
    if (known === undefined) return new PooledBuffer(this, steps * STEP);
    this.#freeOctets -= known.bytes.length;
    return known;
  }

  /** Drops the free buffers. */
  clear(): void {
    this.#free.length = 0;
    this.#freeOctets = 0;
  }

  add(buffer: PooledBuffer): void {
    const { length } = buffer.bytes;
    if (this.#freeOctets + length > this.#spare) return;
    const steps = length / STEP;
    this.#freeOctets += length;
    for (let step = this.#free.length; step <= steps; step++) this.#free.push([]);
    this.#free[steps]?.push(buffer);
  }
}

/** Belongs to the caller that took it, until it is returned, at most once. */
export class PooledBuffer {
  readonly bytes: Buffer;
  readonly #pool: BufferPool;

  constructor(pool: BufferPool, octets: number) {
    this.#pool = pool;
    this.bytes = Buffer.allocUnsafeSlow(octets);
  }

  takeBack(): void {
    this.#pool.add(this);
  }

  /**
   * Like {@link takeBack}, as the callback of a socket write. After an error it is unknown whether the system still
   * reads the buffer.
   */
  readonly written = (error?: Error | null): void => {
    if (error === undefined || error === null) this.#pool.add(this);
  };
}
