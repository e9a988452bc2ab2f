/** Octets of many frames on their way into one write, which is one system call and few records of TLS. */

export const SLAB_OCTETS = 64 * 1024;
/** Room that a connection takes while it answers many: what is gathered leaves in such pieces, each the size of a record of TLS. */
export const PORTION = 16 * 1024;
/** And for what comes later, of many connections in one turn. */
export const SMALL_PORTION = 2 * 1024;

/** Memory that the connections of a listener write into, each in a part of its own. What was written is never written over. */
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

  /** Takes back all but the first `used` octets of what was lent, where that was the last. */
  giveBack(lent: Uint8Array, used: number): void {
    if (lent.buffer !== this.#memory.buffer) return;
    const start = lent.byteOffset - this.#memory.byteOffset;
    if (start + lent.length === this.#used) this.#used = start + used;
  }
}

const NO_OCTETS = new Uint8Array(0);

/** What one connection gathers. */
export class GatheredOutput {
  /** To be written into from {@link length} on. */
  octets: Uint8Array = NO_OCTETS;
  length = 0;
  /** Room that is taken at a time, unless one piece needs more. */
  portion = SMALL_PORTION;
  readonly #slab: OutputSlab;
  readonly #write: (octets: Uint8Array) => void;

  constructor(slab: OutputSlab, write: (octets: Uint8Array) => void) {
    this.#slab = slab;
    this.#write = write;
  }

  /** Makes room for so many octets; what does not fit beside them leaves. @returns where they go */
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
