/** The numbers of one series, as cheap to count on as an element of a typed array. */
import type { CellRange } from "./metric-cells.ts";

/** The numbers of one series. */
export abstract class MetricSlot {
  protected values: Float64Array;
  protected offset: number;
  readonly #length: number;

  constructor(cells: CellRange) {
    this.values = cells.values;
    this.offset = cells.offset;
    this.#length = cells.length;
  }

  /** A copy of the numbers. */
  numbers(): Float64Array {
    return this.values.slice(this.offset, this.offset + this.#length);
  }

  /** For the family only: detaches the slot from its cells, which are returned; the slot keeps counting on its own. */
  detach(): CellRange {
    const cells = { values: this.values, offset: this.offset, length: this.#length };
    this.values = this.values.slice(this.offset, this.offset + this.#length);
    this.offset = 0;
    return cells;
  }
}

/** One series of a counter. */
export class CounterSlot extends MetricSlot {
  /** The count so far. */
  get value(): number {
    return this.values[this.offset] ?? 0;
  }

  /** Adds one. */
  increment(): void {
    this.values[this.offset] = (this.values[this.offset] ?? 0) + 1;
  }

  /** @throws RangeError if the amount is negative or NaN: a counter never falls. */
  add(amount: number): void {
    if (!(amount >= 0)) throw new RangeError(`a counter cannot grow by ${amount}`);
    this.values[this.offset] = (this.values[this.offset] ?? 0) + amount;
  }
}

/** One series of a gauge. */
export class GaugeSlot extends MetricSlot {
  /** The value that was set last, with what was added since. */
  get value(): number {
    return this.values[this.offset] ?? 0;
  }

  /** Replaces the value. */
  set(value: number): void {
    this.values[this.offset] = value;
  }

  /** `amount` may be negative. */
  add(amount: number): void {
    this.values[this.offset] = (this.values[this.offset] ?? 0) + amount;
  }
}

/** One value of a bucket, with its trace. */
export interface Exemplar {
  /** At most 128 characters, including the label's name. */
  readonly traceId: string;
  readonly value: number;
  /** Seconds since 1970. */
  readonly at: number;
}

/** One series of a histogram. */
export class HistogramSlot extends MetricSlot {
  readonly #bounds: Float64Array;
  #exemplars: (Exemplar | undefined)[] | undefined;

  constructor(cells: CellRange, bounds: Float64Array) {
    super(cells);
    this.#bounds = bounds;
  }

  /** Counts a value, `count` times. NaN is ignored, as it would make the sum NaN permanently. */
  observe(value: number, count = 1): void {
    if (Number.isNaN(value)) return;
    const at = this.offset + this.#bucketOf(value);
    this.values[at] = (this.values[at] ?? 0) + count;
    const sum = this.offset + this.#bounds.length + 1;
    this.values[sum] = (this.values[sum] ?? 0) + value * count;
  }

  /** Sets the exemplar of the value's bucket. {@link observe} does the counting. */
  exemplify(exemplar: Exemplar): void {
    this.#exemplars ??= new Array<Exemplar | undefined>(this.#bounds.length + 1).fill(undefined);
    this.#exemplars[this.#bucketOf(exemplar.value)] = exemplar;
  }

  /** At most one for each bucket; `undefined` if there never was one. */
  get exemplars(): readonly (Exemplar | undefined)[] | undefined {
    return this.#exemplars === undefined ? undefined : [...this.#exemplars];
  }

  /** The sum of all values. */
  get sum(): number {
    return this.values[this.offset + this.#bounds.length + 1] ?? 0;
  }

  /** The number of all values. */
  get count(): number {
    return this.cumulativeCount(this.#bounds.length);
  }

  /** The number of values up to the bound of that bucket; the last bucket has no bound. */
  cumulativeCount(bucket: number): number {
    let count = 0;
    for (let index = 0; index <= bucket; index++) count += this.values[this.offset + index] ?? 0;
    return count;
  }

  #bucketOf(value: number): number {
    const bounds = this.#bounds;
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] ?? Infinity)) bucket++;
    return bucket;
  }
}
