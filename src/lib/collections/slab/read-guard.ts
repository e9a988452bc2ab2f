/**
 * Lets threads read memory while another one writes it, without waiting: a counter a region is odd while somebody writes there, and higher
 * afterwards (a sequence lock).
 *
 * Why no reader takes torn octets for whole ones. A writer, who holds the lock, does `Atomics.add` on the counter (W1: n becomes n + 1, odd),
 * writes, and does `Atomics.add` again (W2: n + 2). A reader does `Atomics.load` (R1), gives up if it is odd, reads, and then does
 * `Atomics.compareExchange(counter, n, n)` (R2), which must find n. All four are sequentially consistent, and read-modify-writes of one counter
 * are totally ordered, each reading what the one before it wrote (ECMAScript, memory model).
 *
 * - Say a write comes after what the reader saw at R1. If R2 finds n, it stands before W1 in the order of the counter; W1 reads what R2 wrote, so
 *   R2 synchronizes with W1. Hence every read of the reader happens before every octet of that write, and a read cannot see a write that it
 *   happens before.
 * - Say a write came before: the n of R1 was written by its W2 or by something later, which synchronizes with R1. Hence that write happens before
 *   every read of the reader, which sees it whole.
 *
 * So R2 has to write although it changes nothing: with a mere load, processors that let loads pass loads (ARM) could read the octets after it.
 * The counter grows by two and 32 bits long; a reader would have to sleep through 2^31 writes to one region to be deceived.
 */
export class ReadGuard {
  readonly #counters: Int32Array;
  /** What {@link begin} saw last. */
  #seen = 0;
  #region = 0;

  constructor(counters: Int32Array) {
    this.#counters = counters;
  }

  /** A reader begins. False while somebody writes there. */
  begin(region: number): boolean {
    this.#region = region;
    this.#seen = Atomics.load(this.#counters, region);
    return (this.#seen & 1) === 0;
  }

  /** Whether what was read since {@link begin} is whole. */
  isWhole(): boolean {
    return Atomics.compareExchange(this.#counters, this.#region, this.#seen, this.#seen) === this.#seen;
  }

  /** A writer begins, and with the second call ends. It must be the only one. */
  turn(region: number): void {
    Atomics.add(this.#counters, region, 1);
  }

  /** After a writer that did not come to its end: nobody takes what was there for whole. */
  reset(): void {
    for (let region = 0; region < this.#counters.length; region++)
      Atomics.add(this.#counters, region, (Atomics.load(this.#counters, region) & 1) === 0 ? 2 : 1);
  }
}
