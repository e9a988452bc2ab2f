/** A sender's socket address that outlives its batch. Thousands of queries may wait, each with one. */

import type { Endpoint } from "../plugin/message/endpoint.ts";
import { Linux } from "../runtime/linux/layouts.ts";
import { readAddress, readAddressOctets, SOCKET_ADDRESS_OCTETS } from "../runtime/linux/socket-address.ts";

/** 32-bit words of a socket address. */
const ADDRESS_WORDS = SOCKET_ADDRESS_OCTETS / 4;

/** One socket address, as octets and as words. */
export interface AddressBuffer {
  readonly octets: Uint8Array;
  readonly words: Int32Array;
}

export function addressBuffer(): AddressBuffer {
  const words = new Int32Array(ADDRESS_WORDS);
  return { words, octets: new Uint8Array(words.buffer) };
}

/**
 * The parts of an IPv6 address besides family, port and its last four octets: `flow`, the other octets, and the interface index.
 */
class Ipv6Words {
  readonly flow: number;
  readonly first: number;
  readonly second: number;
  readonly third: number;
  readonly scope: number;

  constructor(flow: number, first: number, second: number, third: number, scope: number) {
    this.flow = flow;
    this.first = first;
    this.second = second;
    this.third = third;
    this.scope = scope;
  }
}

/** The third word of an IPv4-mapped address on an IPv6 socket (RFC 4291 section 2.5.5.2); all other words are 0. */
const MAPPED_WORD = new Int32Array(Uint8Array.of(0, 0, 0xff, 0xff).buffer)[0] ?? 0;
const MAPPED = new Ipv6Words(0, 0, 0, MAPPED_WORD, 0);

/** Copies the address out of a socket address at the word `at`. @returns the family */
export function copyAddressWords(names: Int32Array, at: number, words: Int32Array): 4 | 6 {
  if (((names[at] as number) & 0xffff) === Linux.AF_INET) {
    words[0] = names[at + 1] as number;
    return 4;
  }
  const first = names[at + 2] as number;
  const second = names[at + 3] as number;
  const third = names[at + 4] as number;
  const last = names[at + 5] as number;
  if ((first | second) === 0 && third === MAPPED_WORD) {
    words[0] = last;
    return 4;
  }
  words[0] = first;
  words[1] = second;
  words[2] = third;
  words[3] = last;
  return 6;
}

/**
 * The words are numbers of the object itself: a small array would take three objects and far more memory. IPv4, the usual case,
 * needs two of them.
 */
export class KeptEndpoint implements Endpoint {
  /** Family and port. */
  readonly #head: number;
  /** The IPv4 address, or the end of the IPv6 address. */
  readonly #address: number;
  /** `undefined` on an IPv4 socket. */
  readonly #rest: Ipv6Words | undefined;

  /** @param words socket addresses; the one at `at` is copied */
  constructor(words: Int32Array, at: number) {
    const head = words[at] ?? 0;
    this.#head = head;
    if ((head & 0xffff) === Linux.AF_INET) {
      this.#address = words[at + 1] ?? 0;
      this.#rest = undefined;
    } else {
      const flow = words[at + 1] ?? 0;
      const first = words[at + 2] ?? 0;
      const second = words[at + 3] ?? 0;
      const third = words[at + 4] ?? 0;
      const scope = words[at + 6] ?? 0;
      this.#address = words[at + 5] ?? 0;
      this.#rest =
        (flow | first | second | scope) === 0 && third === MAPPED_WORD
          ? MAPPED
          : new Ipv6Words(flow, first, second, third, scope);
    }
  }

  /** Writes the socket address into the first words. */
  writeTo(words: Int32Array): void {
    const rest = this.#rest;
    words[0] = this.#head;
    words[1] = rest === undefined ? this.#address : rest.flow;
    words[2] = rest === undefined ? 0 : rest.first;
    words[3] = rest === undefined ? 0 : rest.second;
    words[4] = rest === undefined ? 0 : rest.third;
    words[5] = rest === undefined ? 0 : this.#address;
    words[6] = rest === undefined ? 0 : rest.scope;
  }

  get address(): string {
    return readAddress(octetsOf(this), 0);
  }

  get port(): number {
    // The high half of the word, in network order.
    return ((this.#head >>> 24) & 0xff) | ((this.#head >>> 8) & 0xff00);
  }

  /** Called for each late reply (`prometheus`), so it makes no buffer. */
  get family(): 4 | 6 {
    const rest = this.#rest;
    if (rest === undefined || rest === MAPPED) return 4;
    return (rest.first | rest.second) === 0 && rest.third === MAPPED_WORD ? 4 : 6;
  }

  get octets(): Uint8Array {
    return readAddressOctets(octetsOf(this), 0);
  }

  copyAddress(words: Int32Array): 4 | 6 {
    const rest = this.#rest;
    if (rest === undefined || this.family === 4) {
      words[0] = this.#address;
      return 4;
    }
    words[0] = rest.first;
    words[1] = rest.second;
    words[2] = rest.third;
    words[3] = this.#address;
    return 6;
  }

  snapshot(): Endpoint {
    return this;
  }
}

/** Not a private method, because a class with private methods adds a brand to each object. */
function octetsOf(endpoint: KeptEndpoint): Uint8Array {
  const { octets, words } = addressBuffer();
  endpoint.writeTo(words);
  return octets;
}
