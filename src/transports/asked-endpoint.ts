/** The address at which a datagram arrived at a wildcard socket, as the kernel reports it with each datagram. */

import { formatIpAddress, isIpv4Mapped } from "../lib/net/ip-address.ts";
import { type Endpoint, FixedEndpoint } from "../plugin/message/endpoint.ts";
import { CONTROL_WORDS, type ReceiveBatch } from "../runtime/linux/datagram-batch.ts";
import { PacketInfo4, PacketInfo6 } from "../runtime/linux/layouts.ts";

/**
 * The local address of the datagram in one slot, valid until the next batch. It is decoded on demand, so that queries cost nothing
 * for it.
 */
export class SlotLocal implements Endpoint {
  readonly #received: ReceiveBatch;
  readonly #slot: number;
  /** The bound address, for datagrams without a report of the kernel. */
  readonly #bound: Endpoint;

  constructor(received: ReceiveBatch, slot: number, bound: Endpoint) {
    this.#received = received;
    this.#slot = slot;
    this.#bound = bound;
  }

  get address(): string {
    return this.snapshot().address;
  }

  get port(): number {
    return this.#bound.port;
  }

  get family(): 4 | 6 {
    return this.snapshot().family;
  }

  get octets(): Uint8Array {
    return this.snapshot().octets;
  }

  snapshot(): Endpoint {
    const { packetInfo } = this.#received;
    const at = this.#slot * CONTROL_WORDS;
    const words = this.#received.packetInfoLength(this.#slot) / 4;
    return askedEndpoint(packetInfo.subarray(at, at + words), this.#bound);
  }
}

/**
 * @param info arrival data of a datagram, as in `ReceiveBatch`; empty if the kernel gave none
 * @param bound the address that the socket is bound to
 */
export function askedEndpoint(info: Uint32Array, bound: Endpoint): Endpoint {
  const octets = askedOctets(info);
  return octets === undefined ? bound : new FixedEndpoint(formatIpAddress(octets), bound.port, octets);
}

function askedOctets(info: Uint32Array): Uint8Array | undefined {
  const bytes = new Uint8Array(info.buffer, info.byteOffset, info.byteLength);
  if (bytes.length === PacketInfo4.SPACE) return bytes.slice(ASKED_4, ASKED_4 + 4);
  if (bytes.length !== PacketInfo6.SPACE) return undefined;
  const start = isIpv4Mapped(bytes, PacketInfo6.ADDRESS) ? PacketInfo6.ADDRESS + 12 : PacketInfo6.ADDRESS;
  return bytes.slice(start, PacketInfo6.ADDRESS + 16);
}

/**
 * The first address is the one that a reply leaves from. The destination address of the packet, which may be a multicast or
 * broadcast address, follows it (`struct in_pktinfo`).
 */
const ASKED_4 = PacketInfo4.ADDRESS + 4;
