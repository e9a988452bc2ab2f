/**
 * Lets threads read memory while another one writes it, without waiting (a sequence lock): each region has a counter
 * that is odd during a write, and higher afterwards.
 *
 * Why no reader accepts torn octets: A writer, which holds the lock, does `Atomics.add` on the counter (W1: n becomes
 * n + 1, odd), writes, and does `Atomics.add` again (W2: n + 2). A reader does `Atomics.load` (R1), gives up if it is
 * odd, reads, and then does `Atomics.compareExchange(counter, n, n)` (R2), which must find n. All four are
 * sequentially consistent, and read-modify-writes of one counter are totally ordered, each reading the value of its
 * predecessor (ECMAScript, memory model).
 *
 * - Suppose a write comes after the state that the reader saw at R1. If R2 finds n, it precedes W1 in the order of
 * the counter; W1 reads what R2 wrote, so R2 synchronizes with W1. Hence every read happens before every octet of
 * that write, and a read cannot see a write that it happens before.
 * - Suppose a write came before: the n of R1 was written by its W2 or by a later operation, which synchronizes with
 * R1. Hence that write happens before every read of the reader, which sees it whole.
 *
 * So R2 has to write although it changes nothing: with a mere load, processors that reorder loads (ARM) could read
 * the octets after it. The counter has 32 bits and grows by two; a reader would have to sleep through 2^31 writes to
 * one region to be deceived.
 */
export class ReadGuard {
  readonly #counters: Int32Array;
  /** The counter at the latest {@link begin}. */
  #seen = 0;
  #region = 0;

  constructor(counters: Int32Array) {
    this.#counters = counters;
  }

  /** Begins a read. False during a write to the region. */
  begin(region: number): boolean {
    this.#region = region;
    this.#seen = Atomics.load(this.#counters, region);
    return (this.#seen & 1) === 0;
  }

  /** Whether everything read since {@link begin} is whole. */
  isWhole(): boolean {
    return Atomics.compareExchange(this.#counters, this.#region, this.#seen, this.#seen) === this.#seen;
  }

  /** Begins a write, and ends it at the second call. There must be only one writer. */
  turn(region: number): void {
    Atomics.add(this.#counters, region, 1);
  }

  /** Called after a writer that did not finish: readers of the old state fail. */
  reset(): void {
    for (let region = 0; region < this.#counters.length; region++)
      Atomics.add(this.#counters, region, (Atomics.load(this.#counters, region) & 1) === 0 ? 2 : 1);
  }
}
