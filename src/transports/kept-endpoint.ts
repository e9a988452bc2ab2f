/** A sender's socket address that outlives the batch it came with. Thousands of queries may wait, and each has one. */
import {
  readAddress,
  readAddressOctets,
  readFamily,
  readPort,
  SOCKET_ADDRESS_OCTETS,
} from "../lib/linux/socket-address.ts";
import type { Endpoint } from "../plugin/endpoint.ts";

/** Words of four octets that a socket address takes. */
const ADDRESS_WORDS = SOCKET_ADDRESS_OCTETS / 4;

/** One socket address, by the octet and by the word. */
export interface AddressBuffer {
  readonly octets: Uint8Array;
  readonly words: Int32Array;
}

export function addressBuffer(): AddressBuffer {
  const words = new Int32Array(ADDRESS_WORDS);
  return { words, octets: new Uint8Array(words.buffer) };
}

/** Its words are numbers of the object itself: an array of so few octets would take three objects and five times as much. */
export class KeptEndpoint implements Endpoint {
  readonly #first: number;
  readonly #second: number;
  readonly #third: number;
  readonly #fourth: number;
  readonly #fifth: number;
  readonly #sixth: number;
  readonly #seventh: number;

  /** @param words socket addresses, of which the one from `at` on is copied */
  constructor(words: Int32Array, at: number) {
    this.#first = words[at] ?? 0;
    this.#second = words[at + 1] ?? 0;
    this.#third = words[at + 2] ?? 0;
    this.#fourth = words[at + 3] ?? 0;
    this.#fifth = words[at + 4] ?? 0;
    this.#sixth = words[at + 5] ?? 0;
    this.#seventh = words[at + 6] ?? 0;
  }

  /** Writes the socket address into the first words. */
  writeTo(words: Int32Array): void {
    words[0] = this.#first;
    words[1] = this.#second;
    words[2] = this.#third;
    words[3] = this.#fourth;
    words[4] = this.#fifth;
    words[5] = this.#sixth;
    words[6] = this.#seventh;
  }

  get address(): string {
    return readAddress(octetsOf(this), 0);
  }

  get port(): number {
    return readPort(octetsOf(this), 0);
  }

  get family(): 4 | 6 {
    return readFamily(octetsOf(this), 0);
  }

  get octets(): Uint8Array {
    return readAddressOctets(octetsOf(this), 0);
  }

  snapshot(): Endpoint {
    return this;
  }
}

/** No method of its own: a class with private ones leaves a mark in each object. */
function octetsOf(endpoint: KeptEndpoint): Uint8Array {
  const { octets, words } = addressBuffer();
  endpoint.writeTo(words);
  return octets;
}
