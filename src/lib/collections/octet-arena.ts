/**
 * Many small runs of octets in a few large buffers: a store of a hundred thousand texts is then a handful of objects
 * to the garbage collector. Released blocks are reused for blocks of their size, so the contents may change any
 * number of times.
 */

import { type Chunks, ColumnMemory } from "./slab/column-memory.ts";

/** Offset of a block. Never negative. */
export type BlockAddress = number;

const CHUNK_BITS = 20;
const CHUNK_OCTETS = 1 << CHUNK_BITS;
const OFFSET_MASK = CHUNK_OCTETS - 1;
/** Blocks are multiples of this. */
const GRAIN = 16;
/** The longest run that can be stored. */
export const MAX_RUN_OCTETS = 1 << 16;

export class OctetArena {
  readonly #chunks: Chunks;
  /** By size class: addresses of released blocks. */
  readonly #free: BlockAddress[][] = [];
  #end = 0;
  #used = 0;

  /** @param memory that holds the blocks */
  constructor(memory: ColumnMemory = new ColumnMemory()) {
    this.#chunks = memory.chunks(CHUNK_OCTETS);
  }

  /** Octets of all buffers. */
  get reservedOctets(): number {
    return this.#chunks.list.length * CHUNK_OCTETS;
  }

  /** Octets of all blocks in use, rounded as they are stored. */
  get usedOctets(): number {
    return this.#used;
  }

  /**
   * Copies `octets` into a block.
   * @throws RangeError for more than {@link MAX_RUN_OCTETS}
   */
  store(octets: Uint8Array): BlockAddress {
    const size = blockSize(octets.length);
    const address = this.#free[sizeClass(size)]?.pop() ?? this.#extend(size);
    this.#used += size;
    this.#chunk(address).set(octets, address & OFFSET_MASK);
    return address;
  }

  /** Releases a block. `length` is that of the octets stored in it. */
  release(address: BlockAddress, length: number): void {
    const size = blockSize(length);
    const index = sizeClass(size);
    this.#used -= size;
    this.#free[index] ??= [];
    this.#free[index].push(address);
  }

  /** The octets themselves, valid until the block is released. */
  view(address: BlockAddress, length: number): Buffer {
    const start = address & OFFSET_MASK;
    return this.#chunk(address).subarray(start, start + length);
  }

  /** The buffer that holds a block, at {@link offsetOf}: for loops that must not create views. */
  bufferOf(address: BlockAddress): Buffer {
    return this.#chunk(address);
  }

  offsetOf(address: BlockAddress): number {
    return address & OFFSET_MASK;
  }

  /** Whether the octets of a block are those of `bytes` from `start` to `end`. */
  equals(address: BlockAddress, length: number, bytes: Uint8Array, start: number, end: number): boolean {
    if (end - start !== length) return false;
    const chunk = this.#chunk(address);
    const offset = address & OFFSET_MASK;
    for (let at = 0; at < length; at++) if (chunk[offset + at] !== bytes[start + at]) return false;
    return true;
  }

  #chunk(address: BlockAddress): Buffer {
    const chunk = this.#chunks.list[Math.floor(address / CHUNK_OCTETS)];
    if (chunk === undefined) throw new RangeError(`no block at ${address}`);
    return chunk;
  }

  #extend(size: number): BlockAddress {
    // A block does not cross the end of a chunk; the remainder there is lost.
    if ((this.#end & OFFSET_MASK) + size > CHUNK_OCTETS || this.#end >= this.reservedOctets) {
      this.#end = this.reservedOctets;
      this.#chunks.add();
    }
    const address = this.#end;
    this.#end += size;
    return address;
  }
}

/** Up to 1 KiB in steps of 16 octets, above in powers of two. */
function blockSize(length: number): number {
  if (length > MAX_RUN_OCTETS) throw new RangeError(`${length} octets are too many for one block`);
  if (length <= 1024) return Math.max(GRAIN, (length + GRAIN - 1) & ~(GRAIN - 1));
  return 1 << (32 - Math.clz32(length - 1));
}

function sizeClass(size: number): number {
  return size <= 1024 ? size / GRAIN : 64 + (31 - Math.clz32(size)) - 10;
}
