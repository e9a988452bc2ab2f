import type { AddressKey } from "./addresses.ts";

/**
 * What is known under an address. Nearly every address has one entry, so the list that a second one needs is made only
 * then: at 150,000 addresses that saves 150,000 lists.
 */
export class AddressIndex<T extends object> {
  readonly #entries = new Map<AddressKey, T | T[]>();

  get size(): number {
    return this.#entries.size;
  }

  /** All entries under an address, in the order in which they came. The list is never to be changed. */
  get(key: AddressKey): readonly T[] {
    const found = this.#entries.get(key);
    if (found === undefined) return NOTHING;
    return Array.isArray(found) ? found : [found];
  }

  /** Does nothing if the entry is there already. */
  add(key: AddressKey, entry: T): void {
    const found = this.#entries.get(key);
    if (found === undefined) this.#entries.set(key, entry);
    else if (!Array.isArray(found)) {
      if (found !== entry) this.#entries.set(key, [found, entry]);
    } else if (!found.includes(entry)) this.#entries.set(key, [...found, entry]);
  }

  delete(key: AddressKey, entry: T): void {
    const found = this.#entries.get(key);
    if (found === entry) this.#entries.delete(key);
    else if (Array.isArray(found) && found.includes(entry)) {
      const rest = found.filter((other) => other !== entry);
      this.#entries.set(key, rest.length === 1 && rest[0] !== undefined ? rest[0] : rest);
    }
  }
}

const NOTHING: readonly never[] = [];
