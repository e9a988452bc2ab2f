/** Gathers the octets of many frames into one write, which is one system call and few TLS records. */

export const SLAB_OCTETS = 64 * 1024;
/** Write size of a connection with many answers: the size of a TLS record. */
export const PORTION = 16 * 1024;
/** Write size for later answers of many connections in one turn. */
export const SMALL_PORTION = 2 * 1024;

/** Memory that the connections of a listener write into, each in its own part. Written octets are never overwritten. */
export class OutputSlab {
  #memory: Uint8Array = NO_OCTETS;
  #used = 0;

  take(octets: number): Uint8Array {
    if (octets > SLAB_OCTETS) return Buffer.allocUnsafeSlow(octets);
    if (this.#memory.length - this.#used < octets) {
      this.#memory = Buffer.allocUnsafeSlow(SLAB_OCTETS);
      this.#used = 0;
    }
    this.#used += octets;
    return this.#memory.subarray(this.#used - octets, this.#used);
  }

  /** Returns all but the first `used` octets of the last lent part. */
  giveBack(lent: Uint8Array, used: number): void {
    if (lent.buffer !== this.#memory.buffer) return;
    const start = lent.byteOffset - this.#memory.byteOffset;
    if (start + lent.length === this.#used) this.#used = start + used;
  }
}

const NO_OCTETS = new Uint8Array(0);

/** The gathered output of one connection. */
export class GatheredOutput {
  /** Free from {@link length} on. */
  octets: Uint8Array = NO_OCTETS;
  length = 0;
  /** Size of new parts, unless one piece needs more. */
  portion = SMALL_PORTION;
  readonly #slab: OutputSlab;
  readonly #write: (octets: Uint8Array) => void;

  constructor(slab: OutputSlab, write: (octets: Uint8Array) => void) {
    this.#slab = slab;
    this.#write = write;
  }

  /** Makes room for this many octets, and sends the gathered ones if both do not fit. @returns where to write them */
  room(octets: number): number {
    if (this.octets.length - this.length < octets) {
      this.flush();
      this.octets = this.#slab.take(Math.max(octets, this.portion));
    }
    return this.length;
  }

  flush(): void {
    const { octets, length } = this;
    this.octets = NO_OCTETS;
    this.length = 0;
    this.#slab.giveBack(octets, length);
    if (length > 0) this.#write(octets.subarray(0, length));
  }
}
