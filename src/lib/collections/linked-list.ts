/**
 * A list in order of arrival with thousands of insertions and removals per second: connections, pending queries.
 *
 * A `Set` or a `Map` is unsuitable. When its table is full it makes another one, and the old table points to the new
 * one for the sake of iterators. Once a table has been promoted, it keeps alive the next one and everything that was
 * in it, that table the next, and so on until a full collection. Most short-lived entries are promoted that way, and
 * full collections follow each other.
 */
export class LinkedList<T> {
  readonly #end = new ListPlace<T>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The oldest entry, counting moves to the end as arrivals. */
  get first(): T | undefined {
    return this.#end.next.value;
  }

  /** @returns the place of the value, which is needed to remove it */
  append(value: T): ListPlace<T> {
    const place = new ListPlace<T>();
    place.value = value;
    place.linkBefore(this.#end);
    this.#size++;
    return place;
  }

  /** Does nothing for a removed entry. @returns whether it was there */
  remove(place: ListPlace<T>): boolean {
    if (place.value === undefined) return false;
    place.value = undefined;
    place.unlink();
    this.#size--;
    return true;
  }

  /** Moves an entry to the end. Does nothing for a removed entry. */
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

/** A place in a {@link LinkedList}. A removed place has no links, so it keeps nothing alive. */
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
