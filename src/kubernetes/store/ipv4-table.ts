/**
 * A map from IPv4 addresses to objects in half of the memory of a `Map`: two rows side by side, the address and what it leads to, with
 * open addressing. At 150,000 addresses these are 3 MB instead of 7, and one of them is out of the garbage collector's sight.
 */
export class Ipv4Table<T extends object> {
  /** Addresses as signed numbers of 32 bits; what stands where there is no value means nothing. */
  #keys: Int32Array = new Int32Array(SMALLEST);
  #values: (T | undefined)[] = emptyRow(SMALLEST);
  /** By how much a product of 32 bits is shifted to be a place in the rows. */
  #shift = 32 - Math.log2(SMALLEST);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Octets of both rows. */
  get octets(): number {
    return this.#keys.byteLength + this.#values.length * POINTER_OCTETS;
  }

  get(key: number): T | undefined {
    const keys = this.#keys;
    const values = this.#values;
    const mask = keys.length - 1;
    for (let at = Math.imul(key, SPREAD) >>> this.#shift; ; at = (at + 1) & mask) {
      const value = values[at];
      if (value === undefined || keys[at] === key) return value;
    }
  }

  set(key: number, value: T): void {
    const at = this.#placeOf(key);
    const isNew = this.#values[at] === undefined;
    this.#keys[at] = key;
    this.#values[at] = value;
    if (!isNew) return;
    this.#size++;
    if (this.#size > this.#keys.length * FULLEST) this.#resize(this.#keys.length * 2);
  }

  delete(key: number): void {
    const keys = this.#keys;
    const values = this.#values;
    const mask = keys.length - 1;
    let hole = this.#placeOf(key);
    if (values[hole] === undefined) return;
    // What stands behind moves forward, unless it would come to stand in front of its own place: so there are no marks of deleted ones.
    for (let at = (hole + 1) & mask; values[at] !== undefined; at = (at + 1) & mask) {
      const home = Math.imul(keys[at] ?? 0, SPREAD) >>> this.#shift;
      if (((at - home) & mask) < ((at - hole) & mask)) continue;
      keys[hole] = keys[at] ?? 0;
      values[hole] = values[at];
      hole = at;
    }
    values[hole] = undefined;
    this.#size--;
    if (keys.length > SMALLEST && this.#size < keys.length * EMPTIEST) this.#resize(keys.length / 2);
  }

  /** Where a key stands, or would come to stand. */
  #placeOf(key: number): number {
    const mask = this.#keys.length - 1;
    let at = Math.imul(key, SPREAD) >>> this.#shift;
    while (this.#values[at] !== undefined && this.#keys[at] !== key) at = (at + 1) & mask;
    return at;
  }

  #resize(length: number): void {
    const keys = this.#keys;
    const values = this.#values;
    this.#keys = new Int32Array(length);
    this.#values = emptyRow(length);
    this.#shift = 32 - Math.log2(length);
    for (let at = 0; at < values.length; at++) {
      const value = values[at];
      if (value === undefined) continue;
      const key = keys[at] ?? 0;
      const place = this.#placeOf(key);
      this.#keys[place] = key;
      this.#values[place] = value;
    }
  }
}

const SMALLEST = 16;
const POINTER_OCTETS = 8;
/** Shares of the places that are in use. Between them is room, so that what comes and goes does not resize the rows each time. */
const FULLEST = 0.75;
const EMPTIEST = 0.15;
/** 2^32 divided by the golden ratio: neighbouring addresses come to stand far from each other (Knuth, volume 3, 6.4). */
const SPREAD = 0x9e37_79b1;

function emptyRow<T>(length: number): (T | undefined)[] {
  return new Array<T | undefined>(length).fill(undefined);
}
