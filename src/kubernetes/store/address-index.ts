import type { AddressKey } from "../objects/addresses.ts";
import { Ipv4Table } from "./ipv4-table.ts";

/**
 * What is known under an address. Nearly every address has one entry, so the list that a second one needs is made only
 * then: at 150,000 addresses that saves 150,000 lists.
 */
export class AddressIndex<T extends object> {
  readonly #ipv4 = new Ipv4Table<T | T[]>();
  readonly #ipv6 = new Map<string, T | T[]>();

  get size(): number {
    return this.#ipv4.size + this.#ipv6.size;
  }

  /** Octets that IPv4 addresses take. */
  get octets(): number {
    return this.#ipv4.octets;
  }

  /** All entries under an address, in the order in which they came. The list is never to be changed. */
  get(key: AddressKey): readonly T[] {
    const found = this.#find(key);
    if (found === undefined) return NOTHING;
    return Array.isArray(found) ? found : [found];
  }

  /** Does nothing if the entry is there already. */
  add(key: AddressKey, entry: T): void {
    const found = this.#find(key);
    if (found === undefined) this.#keep(key, entry);
    else if (!Array.isArray(found)) {
      if (found !== entry) this.#keep(key, [found, entry]);
    } else if (!found.includes(entry)) this.#keep(key, [...found, entry]);
  }

  delete(key: AddressKey, entry: T): void {
    const found = this.#find(key);
    if (found === entry) this.#drop(key);
    else if (Array.isArray(found) && found.includes(entry)) {
      const rest = found.filter((other) => other !== entry);
      this.#keep(key, rest.length === 1 && rest[0] !== undefined ? rest[0] : rest);
    }
  }

  #find(key: AddressKey): T | T[] | undefined {
    return typeof key === "number" ? this.#ipv4.get(key) : this.#ipv6.get(key);
  }

  #keep(key: AddressKey, found: T | T[]): void {
    if (typeof key === "number") this.#ipv4.set(key, found);
    else this.#ipv6.set(key, found);
  }

  #drop(key: AddressKey): void {
    if (typeof key === "number") this.#ipv4.delete(key);
    else this.#ipv6.delete(key);
  }
}

const NOTHING: readonly never[] = [];
