/** A run of numbers that belongs to one series. */
export interface CellRange {
  readonly values: Float64Array;
  /** Index of the first of them. */
  readonly offset: number;
  readonly length: number;
}

/**
 * The numbers of all series: a few large Float64Arrays, so that an increment is one store.
 *
 * This is the seam for worker threads: chunks may become SharedArrayBuffers with one row per thread, allocated at the
 * same places in each, and a reader sums the rows. Users of a {@link CellRange} need not change.
 */
export class MetricCells {
  #chunk = new Float64Array(0);
  #used = 0;
  readonly #free = new Map<number, CellRange[]>();

  /** A range of `length` zeros. */
  allocate(length: number): CellRange {
    const freed = this.#free.get(length)?.pop();
    if (freed !== undefined) return freed;
    if (this.#used + length > this.#chunk.length) {
      this.#chunk = new Float64Array(Math.max(CHUNK_LENGTH, length));
      this.#used = 0;
    }
    const range = { values: this.#chunk, offset: this.#used, length };
    this.#used += length;
    return range;
  }

  /** Frees a range. It must not be written any more. */
  free(range: CellRange): void {
    range.values.fill(0, range.offset, range.offset + range.length);
    const freed = this.#free.get(range.length);
    if (freed === undefined) this.#free.set(range.length, [range]);
    else freed.push(range);
  }
}

const CHUNK_LENGTH = 1024;
