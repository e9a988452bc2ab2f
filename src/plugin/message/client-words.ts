/** A client's address as 32-bit words of the machine, for code that must not create objects for each query. */
import { isIpv4Mapped } from "../../lib/net/ip-address.ts";
import type { Endpoint } from "./endpoint.ts";

export class ClientWords {
  /** The address from the first word on: one for IPv4, four for IPv6. */
  readonly words: Int32Array = new Int32Array(4);
  /** The same memory. */
  readonly octets: Uint8Array = new Uint8Array(this.words.buffer);
  family: 4 | 6 = 4;

  /** IPv4-mapped addresses count as IPv4. */
  read(client: Endpoint): void {
    if (client.copyAddress !== undefined) {
      this.family = client.copyAddress(this.words);
      return;
    }
    const { octets } = client;
    const isMapped = octets.length === 16 && isIpv4Mapped(octets);
    this.family = octets.length === 4 || isMapped ? 4 : 6;
    const start = isMapped ? 12 : 0;
    for (let at = start; at < octets.length; at++) this.octets[at - start] = octets[at] ?? 0;
  }

  /** Takes over an address from the word `at` on. */
  copy(words: Int32Array, at: number, family: 4 | 6): void {
    this.family = family;
    this.words[0] = words[at] as number;
    if (family === 4) return;
    this.words[1] = words[at + 1] as number;
    this.words[2] = words[at + 2] as number;
    this.words[3] = words[at + 3] as number;
  }

  /** Clears the bits past a prefix, as {@link prefixMask} has them. */
  mask(masks: Int32Array): void {
    const words = this.family === 4 ? 1 : 4;
    for (let word = 0; word < words; word++)
      this.words[word] = (this.words[word] as number) & (masks[word] as number);
  }
}

/** The first `length` bits of an address set, in the words of this machine. */
export function prefixMask(length: number): Int32Array {
  const words = new Int32Array(4);
  const octets = new Uint8Array(words.buffer);
  for (let bit = 0; bit < length; bit++) octets[bit >> 3] = (octets[bit >> 3] ?? 0) | (0x80 >> (bit & 7));
  return words;
}
