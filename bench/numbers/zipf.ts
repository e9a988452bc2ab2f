/** The popularity of names: the n-th most popular one is queried 1/n^s as often as the first (Zipf's law). */
export class ZipfDistribution {
  /** At each rank, the share of draws that fall on it or on a more popular one. */
  readonly #cumulative: Float64Array;

  /**
   * @param count how many ranks there are
   * @param exponent s; 1 is near to what resolvers see
   */
  constructor(count: number, exponent = 1) {
    if (!Number.isSafeInteger(count) || count < 1) throw new RangeError(`not a number of ranks: ${count}`);
    this.#cumulative = new Float64Array(count);
    let sum = 0;
    for (let rank = 0; rank < count; rank++) {
      sum += (rank + 1) ** -exponent;
      this.#cumulative[rank] = sum;
    }
    for (let rank = 0; rank < count; rank++) this.#cumulative[rank] = this.#at(rank) / sum;
  }

  /** The share of draws that fall on a rank; ranks count from 0. */
  share(rank: number): number {
    return this.#at(rank) - (rank === 0 ? 0 : this.#at(rank - 1));
  }

  /**
   * The rank that a random number leads to.
   * @param fraction from 0 up to, but not including, 1
   */
  rank(fraction: number): number {
    let low = 0;
    let high = this.#cumulative.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#at(middle) > fraction) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #at(rank: number): number {
    return this.#cumulative[rank] ?? 1;
  }
}
