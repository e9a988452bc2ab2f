/**
 * The keys that were noted most often, in a fixed number of places (the Space-Saving algorithm of Metwally, Agrawal and El Abbadi). A key
 * that makes up more than 1/places of all notes has a place for certain. Counts may be too high, never too low.
 */
export class HeavyHitters {
  readonly places: number;
  readonly #lows: Int32Array;
  readonly #highs: Int32Array;
  readonly #counts: Float64Array;

  constructor(places: number) {
    this.places = places;
    this.#lows = new Int32Array(places);
    this.#highs = new Int32Array(places);
    this.#counts = new Float64Array(places);
  }

  /**
   * @param low, high a hash of the key
   * @returns its place; {@link isNew} tells whether another key had it before
   */
  note(low: number, high: number): number {
    const lows = this.#lows;
    const counts = this.#counts;
    let least = 0;
    for (let place = 0; place < lows.length; place++) {
      if (lows[place] === low && this.#highs[place] === high && counts[place] !== 0) {
        counts[place] = (counts[place] as number) + 1;
        this.isNew = false;
        return place;
      }
      if ((counts[place] as number) < (counts[least] as number)) least = place;
    }
    lows[least] = low;
    this.#highs[least] = high;
    counts[least] = (counts[least] as number) + 1;
    this.isNew = true;
    return least;
  }

  /** Of the last {@link note}. */
  isNew = false;

  count(place: number): number {
    return this.#counts[place] ?? 0;
  }

  /** The places of keys, the highest counts first. */
  ranked(): number[] {
    return Array.from(this.#counts.keys())
      .filter((place) => this.count(place) > 0)
      .sort((one, other) => this.count(other) - this.count(one));
  }

  clear(): void {
    this.#counts.fill(0);
  }
}
