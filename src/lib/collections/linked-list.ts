/**
 * A list in the order of arrival whose entries come and go by the thousand each second: connections, queries under way.
 *
 * A `Set` or a `Map` is the wrong thing for them. When its table is full it makes another one, and the former points to the latter for the
 * sake of iterators. Once a table has become old, it keeps alive the next one and all that stood in there, that one the next, and
 * so on until a full collection: most of what passes through is promoted, and full collections come one upon another. Measured with 128
 * entries of 1 KB under way: 78 full collections against 2, and 4 times the time spent collecting.
 */
export class LinkedList<T> {
  readonly #end = new ListPlace<T>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The entry that has been here longest, or was last moved to the end before all others. */
  get first(): T | undefined {
    return this.#end.next.value;
  }

  /** @returns where the value stands: who added it keeps that to take it out again */
  append(value: T): ListPlace<T> {
    const place = new ListPlace<T>();
    place.value = value;
    place.linkBefore(this.#end);
    this.#size++;
    return place;
  }

  /** Does nothing for what was removed before. @returns whether it was there */
  remove(place: ListPlace<T>): boolean {
    if (place.value === undefined) return false;
    place.value = undefined;
    place.unlink();
    this.#size--;
    return true;
  }

  /** Makes an entry the last one. Does nothing for what was removed before. */
  moveToEnd(place: ListPlace<T>): void {
    if (place.value === undefined) return;
    place.unlink();
    place.linkBefore(this.#end);
  }

  /** Oldest first. What is removed meanwhile may be the entry visited, or any other but the next. */
  *[Symbol.iterator](): Generator<T> {
    for (let place = this.#end.next; place.value !== undefined; ) {
      const { next } = place;
      yield place.value;
      place = next;
    }
  }
}

/** A place in a {@link LinkedList}. What has been taken out points nowhere, so that it keeps nothing alive. */
export class ListPlace<T> {
  value: T | undefined = undefined;
  next: ListPlace<T> = this;
  previous: ListPlace<T> = this;

  linkBefore(other: ListPlace<T>): void {
    this.previous = other.previous;
    this.next = other;
    other.previous.next = this;
    other.previous = this;
  }

  unlink(): void {
    this.previous.next = this.next;
    this.next.previous = this.previous;
    this.next = this;
    this.previous = this;
  }
}
