/**
 * Which id belongs to whom: constant time, no hashing, and ids as unpredictable as the numbers they are claimed with.
 * The index of 65,536 entries is zeroed memory that the system gives page by page as ids are used.
 */
export class IdTable<T> {
  /** Place of the value plus 1; 0 for a free id. */
  readonly #placeOfId = new Uint16Array(0x1_0000);
  readonly #values: (T | undefined)[] = [];
  readonly #freePlaces: number[] = [];
  #size = 0;
  readonly limit: number;

  /** @param limit how many ids may be taken at once, at most 32,768: half of them free makes a free one easy to draw. */
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
   * @param draw 32 bits of an unpredictable number, asked for again when the id it gives is taken
   * @throws RangeError when the table is full
   */
  claim(value: T, first: number, draw: () => number): number {
    if (this.isFull) throw new RangeError("no free id");
    let id = first & 0xffff;
    for (let attempt = 0; this.#placeOfId[id] !== 0; attempt++) {
      // A source that keeps drawing taken ids is broken, or a test's: any free id is better than none.
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
    return place === 0 ? undefined : this.#values[place - 1];
  }

  release(id: number): void {
    const place = this.#placeOfId[id] ?? 0;
    if (place === 0) return;
    this.#placeOfId[id] = 0;
    this.#values[place - 1] = undefined;
    this.#freePlaces.push(place - 1);
    this.#size--;
  }

  /** All values for which `wanted` is true. Walks the table: for the rare end of a socket. */
  select(wanted: (value: T) => boolean): T[] {
    const found: T[] = [];
    for (const value of this.#values) if (value !== undefined && wanted(value)) found.push(value);
    return found;
  }
}

/** With half of the ids taken, one in 65,536 claims would need more. */
const MAX_DRAWS = 16;
