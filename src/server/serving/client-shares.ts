/** How many places the clients of pending queries hold, in fixed memory. */
import { ClientWords } from "../../plugin/message/client-words.ts";
import type { Endpoint } from "../../plugin/message/endpoint.ts";

/** Clients whose hashes are equal share a count, so there are more counts than clients that can be above their share. */
const COUNTS = 4_096;
const COUNT_SHIFT = 20;
const HASH_PRIME = 0x9e3779b1;

export class ClientShares {
  readonly #seed: number;
  readonly #places: Int32Array = new Int32Array(COUNTS);
  readonly #client: ClientWords = new ClientWords();

  /** @param seed 32 bits that an attacker cannot guess */
  constructor(seed: number) {
    this.#seed = seed;
  }

  /** The number of a client's count. */
  numberOf(endpoint: Endpoint): number {
    const client = this.#client;
    client.read(endpoint);
    let hash = this.#seed ^ client.family;
    const words = client.family === 4 ? 1 : 4;
    for (let word = 0; word < words; word++) {
      hash = Math.imul(hash ^ (client.words[word] as number), HASH_PRIME);
      hash ^= hash >>> 15;
    }
    return Math.imul(hash, HASH_PRIME) >>> COUNT_SHIFT;
  }

  add(number: number, places: number): void {
    this.#places[number] = this.placesOf(number) + places;
  }

  placesOf(number: number): number {
    return this.#places[number] as number;
  }
}
