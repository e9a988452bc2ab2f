/** Keys of TSIG: names with a shared secret. */
import type { Name } from "../name.ts";
import type { TsigAlgorithm } from "./algorithms.ts";

/** A key of TSIG, which two servers share. */
export interface TsigKey {
  /** In lower case. */
  readonly name: Name;
  readonly secret: Uint8Array;
  /** The algorithm for signing without a query to follow. A client may use any other. */
  readonly algorithm: TsigAlgorithm;
  /** Minimum octets of a MAC; default: the algorithm's own number (RFC 8945 section 5.2.2.1). */
  readonly leastMacOctets?: number | undefined;
}

/** Looks up keys. */
export interface TsigKeySource {
  get(name: Name): TsigKey | undefined;
}

/** Keys by name, ignoring case (RFC 8945 section 4.2). */
export class TsigKeyRing implements TsigKeySource {
  readonly #keys = new Map<string, TsigKey>();

  get size(): number {
    return this.#keys.size;
  }

  /** @returns false if this name already has another secret, which stays */
  add(key: TsigKey): boolean {
    const text = key.name.toLowerCase().toString();
    const known = this.#keys.get(text);
    if (known !== undefined) return Buffer.compare(known.secret, key.secret) === 0;
    this.#keys.set(text, key);
    return true;
  }

  get(name: Name): TsigKey | undefined {
    return this.#keys.get(name.toLowerCase().toString());
  }

  keys(): Iterable<TsigKey> {
    return this.#keys.values();
  }
}
