/**
 * Remembers at which of our addresses each client's datagrams arrive, so that ours leave from there; OpenSSL does not. The table
 * has a fixed size: if two clients share a place, the latest datagram decides.
 */
import { CONTROL_WORDS } from "../../runtime/linux/datagram-batch.ts";
import { SOCKET_ADDRESS_OCTETS } from "../../runtime/linux/socket-address.ts";

const PLACES = 4096;

export class ArrivalTable {
  readonly packetInfo = new Uint32Array(PLACES * CONTROL_WORDS);
  readonly #names = new Uint8Array(PLACES * SOCKET_ADDRESS_OCTETS);
  readonly #lengths = new Uint8Array(PLACES);
  readonly #addressEnd: number;

  /** @param addressEnd octets of a socket address that identify a client */
  constructor(addressEnd: number) {
    this.#addressEnd = addressEnd;
  }

  note(
    hash: number,
    names: Uint8Array,
    nameAt: number,
    info: Uint32Array,
    infoAt: number,
    infoOctets: number,
  ): void {
    const place = (hash >>> 8) % PLACES;
    for (let index = 0; index < this.#addressEnd; index++)
      this.#names[place * SOCKET_ADDRESS_OCTETS + index] = names[nameAt + index] as number;
    for (let word = 0; word < infoOctets >> 2; word++)
      this.packetInfo[place * CONTROL_WORDS + word] = info[infoAt + word] as number;
    this.#lengths[place] = infoOctets;
  }

  /** @returns the word in {@link packetInfo}; negative if the client is unknown */
  find(hash: number, names: Uint8Array, nameAt: number): number {
    const place = (hash >>> 8) % PLACES;
    if (this.#lengths[place] === 0) return -1;
    for (let index = 0; index < this.#addressEnd; index++) {
      if (this.#names[place * SOCKET_ADDRESS_OCTETS + index] !== names[nameAt + index]) return -1;
    }
    return place * CONTROL_WORDS;
  }

  /** Octets of the entry at a word returned by {@link find}. */
  length(found: number): number {
    return this.#lengths[found / CONTROL_WORDS] as number;
  }
}
