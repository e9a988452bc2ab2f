/**
 * Buffers of many kilobytes that are used again. V8 sees of such a buffer little more than the small object that stands for it, and comes to
 * collect it when a hundred megabytes of them have been used once; and what it frees then lies in pieces in the heap of the C library.
 */

/** Octets up to which a buffer of its own, or a part of Node's pool, costs less than one to give back. */
export const LEAST_POOLED = 4096;

/** Sizes are multiples of this: no buffer is more than twice as large as what it was taken for. */
const STEP = 8 * 1024;
/** Octets that lie free at the most, where nobody says otherwise. */
const USUAL_SPARE = 2 * 1024 * 1024;

export class BufferPool {
  /** By size, in steps. */
  readonly #free: PooledBuffer[][] = [];
  readonly #spare: number;
  #freeOctets = 0;

  /** @param spare octets that may lie free; what comes back beyond is left to the garbage collector */
  constructor(spare: number = USUAL_SPARE) {
    this.#spare = spare;
  }

  /** Octets that lie free. */
  get freeOctets(): number {
    return this.#freeOctets;
  }

  /** A buffer of so many octets or somewhat more, with anything in it. One that does not come back is collected as any other. */
  take(octets: number): PooledBuffer {
    const steps = Math.ceil(octets / STEP);
    const known = this.#free[steps]?.pop();
    if (known === undefined) return new PooledBuffer(this, steps * STEP);
    this.#freeOctets -= known.bytes.length;
    return known;
  }

  /** Lets go of what lies free. */
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

/** Belongs to who took it, until it is given back, which is once at the most. */
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

  /** As {@link takeBack}, for who writes it to a socket. After an error nobody knows what the system still reads of it. */
  readonly written = (error?: Error | null): void => {
    if (error === undefined || error === null) this.#pool.add(this);
  };
}
