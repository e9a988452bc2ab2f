/**
 * Maps ids to their owners: constant time, no hashing, and ids as unpredictable as the random numbers that claim them. The index of
 * 65,536 entries is zeroed memory that the system commits page by page as ids are used.
 * A released id rests before it is reused, so that a late answer to its last query meets no other query.
 */
export class IdTable<T> {
  /** Place of the value plus 1; 0 for a free id. */
  readonly #placeOfId = new Uint16Array(0x1_0000);
  readonly #values: (T | undefined)[] = [];
  readonly #freePlaces: number[] = [];
  #size = 0;
  readonly limit: number;
  /** The resting ids in the order of their release: a ring. */
  readonly #restingIds = new Uint16Array(MOST_AT_REST);
  /** Milliseconds of the clock, whole, modulo 2^32. */
  readonly #restsUntil = new Uint32Array(MOST_AT_REST);
  #restingFrom = 0;
  #restingCount = 0;

  /** @param limit of ids in use, at most 32,768: with half of them free, a random draw finds a free id quickly. */
  constructor(limit: number) {
    if (!(limit >= 1 && limit <= 0x8000)) throw new RangeError("an id table holds 1 to 32768 ids");
    this.limit = limit;
  }

  get size(): number {
    return this.#size;
  }

  get isFull(): boolean {
    return this.#size >= this.limit;
  }

  /**
   * Takes a free id for `value`.
   *
   * @param draw returns 32 unpredictable bits; called again if the id is taken
   * @param now milliseconds of the clock
   * @throws RangeError if the table is full
   */
  claim(value: T, first: number, draw: () => number, now: number): number {
    if (this.isFull) throw new RangeError("no free id");
    while (this.#restingCount > 0 && this.#firstIsRested(now)) this.#wakeFirst();
    let id = first & 0xffff;
    for (let attempt = 0; this.#placeOfId[id] !== 0; attempt++) {
      // A source that keeps drawing taken ids is broken, or a test's: then any free id will do.
      id = (attempt < MAX_DRAWS ? draw() : id + 1) & 0xffff;
    }
    const place = this.#freePlaces.pop() ?? this.#values.length;
    this.#values[place] = value;
    this.#placeOfId[id] = place + 1;
    this.#size++;
    return id;
  }

  get(id: number): T | undefined {
    const place = this.#placeOfId[id] ?? 0;
    return place === 0 || place === AT_REST ? undefined : this.#values[place - 1];
  }

  /**
   * Releases an id. When very many rest, the one that has rested longest is reused early.
   * @param until milliseconds of the clock before which the id is not reused
   */
  release(id: number, until: number): void {
    const place = this.#placeOfId[id] ?? 0;
    if (place === 0 || place === AT_REST) return;
    this.#values[place - 1] = undefined;
    this.#freePlaces.push(place - 1);
    this.#size--;
    if (this.#restingCount === MOST_AT_REST) this.#wakeFirst();
    const at = (this.#restingFrom + this.#restingCount++) & (MOST_AT_REST - 1);
    this.#restingIds[at] = id;
    this.#restsUntil[at] = until;
    this.#placeOfId[id] = AT_REST;
  }

  /** All values for which `wanted` is true. Walks the table, so only for the rare end of a socket. */
  select(wanted: (value: T) => boolean): T[] {
    const found: T[] = [];
    for (const value of this.#values) if (value !== undefined && wanted(value)) found.push(value);
    return found;
  }

  #firstIsRested(now: number): boolean {
    return ((this.#restsUntil[this.#restingFrom] as number) - now) << 0 <= 0;
  }

  #wakeFirst(): void {
    this.#placeOfId[this.#restingIds[this.#restingFrom] as number] = 0;
    this.#restingFrom = (this.#restingFrom + 1) & (MOST_AT_REST - 1);
    this.#restingCount--;
  }
}

/** Marks a resting id. No place is this high, as the limit is half of it. */
const AT_REST = 0xffff;
/** A power of two. With all places taken, a quarter of the ids is still free. */
const MOST_AT_REST = 16_384;

/** With half of the ids taken, one in 65,536 claims would need more. */
const MAX_DRAWS = 16;
