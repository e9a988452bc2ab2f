/**
 * Token buckets in one buffer, found by a hash of 64 bits: for limits on clients, of which an attacker can invent any number. Memory has a
 * bound, and no object belongs to a bucket. The table has sets of eight places. In a full set, the bucket that was used least recently goes;
 * it starts full when it comes again.
 *
 * Threads can share the memory. They do not lock it: at worst, two of them take the same token.
 */

/** Places of a set. */
const WAYS = 8;
/** A tag of 4 bytes, and the cell below. */
export const BUCKET_OCTETS = 20;
/** A cell: the time as a float, then two words. */
const CELL_WORDS = 4;
const USED = 2;
/** The upper bits of the hash, and the number of refusals. */
const MIXED = 3;
const COUNT_BITS = 0xfff;
/** The number of refusals starts again from here: a multiple of 1 to 10, so that each second or third one stays that. */
const COUNTED = 2_520;
/** The tag of an empty place. */
const EMPTY = 0;
/** In front of the places: the number of buckets, and the epoch of the times. */
const HEAD_OCTETS = 64;
const NOWHERE = -1;

/** Time in milliseconds. */
export interface Allowance {
  /** Milliseconds in which one token comes back. */
  readonly interval: number;
  /** Tokens of a full bucket, times {@link interval}. */
  readonly burst: number;
  /**
   * Milliseconds of debt that refused queries can run up, 0 if they cost nothing. With a debt, a client that does not slow down gets
   * nothing more.
   */
  readonly debt: number;
}

export class BucketTable {
  readonly memory: SharedArrayBuffer;
  /** The most buckets. */
  readonly capacity: number;
  /** Maps 32 bits of a hash to a set. */
  readonly #scale: number;
  readonly #held: Int32Array;
  readonly #tags: Int32Array;
  readonly #words: Int32Array;
  /** When the bucket is full again, at the word `place * CELL_WORDS`. */
  readonly #full: Float64Array;
  /** Added to this thread's times. */
  readonly #shift: number;

  /** @param epoch `wallTime() - now()` of this thread's clock */
  private constructor(memory: SharedArrayBuffer, epoch: number, isNew: boolean) {
    this.memory = memory;
    this.capacity = (memory.byteLength - HEAD_OCTETS) / BUCKET_OCTETS;
    this.#scale = this.capacity / WAYS / 0x1_0000_0000;
    this.#held = new Int32Array(memory, 0, 1);
    const epochs = new Float64Array(memory, 8, 1);
    if (isNew) epochs[0] = epoch;
    this.#shift = epoch - (epochs[0] ?? epoch);
    const cells = HEAD_OCTETS + 4 * this.capacity;
    this.#tags = new Int32Array(memory, HEAD_OCTETS, this.capacity);
    this.#words = new Int32Array(memory, cells, this.capacity * CELL_WORDS);
    this.#full = new Float64Array(memory, cells, (this.capacity * CELL_WORDS) / 2);
  }

  /** @param buckets rounded up to whole sets */
  static create(buckets: number, epoch = 0): BucketTable {
    const places = Math.max(1, Math.ceil(buckets / WAYS)) * WAYS;
    // Pages that were never written take no memory.
    return new BucketTable(new SharedArrayBuffer(HEAD_OCTETS + places * BUCKET_OCTETS), epoch, true);
  }

  /** The table of another thread. */
  static over(memory: SharedArrayBuffer, epoch: number): BucketTable {
    return new BucketTable(memory, epoch, false);
  }

  /** Buckets in the table. */
  get size(): number {
    return this.#held[0] as number;
  }

  get octets(): number {
    return this.memory.byteLength;
  }

  /**
   * Takes a token.
   * @returns 0 if there was one, else the number of this refusal, from 1 on
   */
  take(low: number, high: number, { interval, burst, debt }: Allowance, now: number): number {
    const time = now + this.#shift;
    const place = this.#placeOf(low, high, time);
    const cell = place * CELL_WORDS;
    const at = cell >> 1;
    const full = this.#full[at] as number;
    const next = (full > time ? full : time) + interval;
    this.#words[cell + USED] = time | 0;
    if (next <= time + burst) {
      this.#full[at] = next;
      return 0;
    }
    if (debt > 0) this.#full[at] = Math.min(next, time + burst + debt);
    const mixed = this.#words[cell + MIXED] as number;
    const count = ((mixed & COUNT_BITS) % COUNTED) + 1;
    this.#words[cell + MIXED] = (mixed & ~COUNT_BITS) | count;
    return count;
  }

  /** Takes a token if there is one, and changes nothing otherwise. */
  takeIfFree(low: number, high: number, { interval, burst }: Allowance, now: number): boolean {
    const time = now + this.#shift;
    let place = this.#find(low, high);
    if (place === NOWHERE) {
      if (interval > burst) return false;
      place = this.#placeOf(low, high, time);
    }
    const cell = place * CELL_WORDS;
    const full = this.#full[cell >> 1] as number;
    const next = (full > time ? full : time) + interval;
    if (next > time + burst) return false;
    this.#full[cell >> 1] = next;
    this.#words[cell + USED] = time | 0;
    return true;
  }

  /** The number of tokens that a query would find, rounded down. Changes nothing. */
  tokens(low: number, high: number, { interval, burst }: Allowance, now: number): number {
    const place = this.#find(low, high);
    if (place === NOWHERE) return Math.floor(burst / interval);
    const missing = Math.max(0, (this.#full[(place * CELL_WORDS) >> 1] as number) - now - this.#shift);
    return Math.max(0, Math.floor((burst - missing) / interval));
  }

  #find(low: number, high: number): number {
    const tag = tagOf(low);
    const first = this.#firstOf(low);
    const tags = this.#tags;
    for (let place = first; place < first + WAYS; place++)
      if (tags[place] === tag && this.#isOf(place, high)) return place;
    return NOWHERE;
  }

  #isOf(place: number, high: number): boolean {
    return (((this.#words[place * CELL_WORDS + MIXED] as number) ^ high) & ~COUNT_BITS) === 0;
  }

  /** The place of a bucket, which is made if there is none. */
  #placeOf(low: number, high: number, time: number): number {
    const found = this.#find(low, high);
    if (found !== NOWHERE) return found;
    const first = this.#firstOf(low);
    const tags = this.#tags;
    const words = this.#words;
    const stamp = time | 0;
    let chosen = first;
    let longest = NOWHERE;
    for (let place = first; place < first + WAYS; place++) {
      if (tags[place] === EMPTY) {
        chosen = place;
        this.#held[0] = (this.#held[0] as number) + 1;
        break;
      }
      // The stamps wrap around.
      const unused = (stamp - (words[place * CELL_WORDS + USED] as number)) | 0;
      if (unused > longest) {
        longest = unused;
        chosen = place;
      }
    }
    tags[chosen] = tagOf(low);
    const cell = chosen * CELL_WORDS;
    this.#full[cell >> 1] = 0;
    words[cell + USED] = stamp;
    words[cell + MIXED] = high & ~COUNT_BITS;
    return chosen;
  }

  /** Multiplies instead of dividing, so that the number of sets need not be a power of two. */
  #firstOf(low: number): number {
    return Math.floor((low >>> 0) * this.#scale) * WAYS;
  }
}

function tagOf(low: number): number {
  return low === EMPTY ? 1 : low;
}
