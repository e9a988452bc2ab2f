/**
 * Addresses for hosts that have none, as Istio's proxies were told them (`ISTIO_META_DNS_AUTO_ALLOCATE`; docs/spec/kube-dns.md#automatic-addresses): a host's place
 * in the range follows from a hash of its name, so that servers agree without asking each other, unless two hosts want one place.
 */

/** Addresses in 240.240.0.0/16 that end neither in 0 nor in 255. */
const PLACES = 65_024;
/** Of what an address is made: 255 in each of 256 networks. */
const NUMBERS = 65_280;
/** The second hash of a place that is taken. */
const PRIME = 65_011;

export class AutomaticAddresses {
  /** Of each slot: the number of its address; 0 for none. */
  #numbers: Int32Array = new Int32Array(0);
  #isOutdated = true;

  /** Hosts came or went. */
  outdated(): void {
    this.#isOutdated = true;
  }

  /**
   * The address of a host; empty when there are more hosts than places.
   * @param hosts all of them, the oldest first, each with `namespace/host`
   */
  of(slot: number, length: 4 | 16, hosts: () => Iterable<readonly [slot: number, key: string]>): Uint8Array {
    if (this.#isOutdated) this.#allocate([...hosts()]);
    const number = this.#numbers[slot] ?? 0;
    if (number === 0) return NO_ADDRESS;
    const [high, low] = [Math.floor(number / 255), number % 255];
    return length === 4
      ? Uint8Array.of(240, 240, high, low)
      : Uint8Array.of(0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0xf0, high, low);
  }

  #allocate(hosts: readonly (readonly [slot: number, key: string])[]): void {
    const places = new Int32Array(PLACES).fill(-1);
    let size = 0;
    for (const [slot, key] of hosts.slice(0, PLACES)) {
      places[freePlace(places, hash(key))] = slot;
      size = Math.max(size, slot + 1);
    }
    const numbers = new Int32Array(size);
    // A place whose address would end in 0 moves all behind it by one.
    let skipped = 1;
    for (const [place, slot] of places.entries()) {
      if (slot < 0) continue;
      if ((place + skipped) % 255 === 0) skipped++;
      if (place + skipped < NUMBERS) numbers[slot] = place + skipped;
    }
    this.#numbers = numbers;
    this.#isOutdated = false;
  }
}

const NO_ADDRESS = new Uint8Array(0);

function freePlace(places: Int32Array, key: number): number {
  const step = PRIME - (key % PRIME);
  let place = key % PLACES;
  for (let tries = 1; places[place] !== -1 && tries <= PLACES; tries++) place = (key + tries * step) % PLACES;
  // A step may share a factor with the number of places and never come to a free one.
  return places[place] === -1 ? place : places.indexOf(-1);
}

/** FNV-1a of 32 bits. */
function hash(text: string): number {
  let value = 0x811c_9dc5;
  for (const octet of Buffer.from(text)) value = Math.imul(value ^ octet, 0x0100_0193);
  return value >>> 0;
}
