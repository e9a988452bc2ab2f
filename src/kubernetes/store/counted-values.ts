/** Values that many have in common, by numbers that fit into a column. One that nobody holds any more is let go. */
export class CountedValues<T> {
  readonly #keyOf: (value: T) => unknown;
  readonly #numbers = new Map<unknown, number>();
  readonly #values: (T | undefined)[] = [];
  readonly #holders: number[] = [];
  readonly #free: number[] = [];

  /** @param keyOf what equal values have in common */
  constructor(keyOf: (value: T) => unknown) {
    this.#keyOf = keyOf;
  }

  /** The number of a value that somebody holds. */
  find(value: T): number | undefined {
    return this.#numbers.get(this.#keyOf(value));
  }

  value(number: number): T | undefined {
    return this.#values[number];
  }

  /** Each call wants a {@link release}. @returns its number until then */
  hold(value: T): number {
    const key = this.#keyOf(value);
    const known = this.#numbers.get(key);
    if (known !== undefined) {
      this.#holders[known] = (this.#holders[known] ?? 0) + 1;
      return known;
    }
    const number = this.#free.pop() ?? this.#values.length;
    this.#numbers.set(key, number);
    this.#values[number] = value;
    this.#holders[number] = 1;
    return number;
  }

  release(number: number): void {
    const holders = (this.#holders[number] ?? 0) - 1;
    this.#holders[number] = holders;
    if (holders > 0) return;
    const value = this.#values[number];
    if (value !== undefined) this.#numbers.delete(this.#keyOf(value));
    this.#values[number] = undefined;
    this.#free.push(number);
  }
}
