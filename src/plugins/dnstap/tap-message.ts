/** A hand-written encoder for dnstap's protobuf (dnstap.pb) that creates no object per message. */
import { copyOctets, writeU16 } from "../../dns/octets.ts";
import type { Endpoint, TransportName } from "../../plugin/message/endpoint.ts";

/** `Message.Type`. */
export const TapType = {
  CLIENT_QUERY: 5,
  CLIENT_RESPONSE: 6,
  FORWARDER_QUERY: 7,
  FORWARDER_RESPONSE: 8,
} as const;

/** `SocketProtocol`. */
const PROTOCOLS: Readonly<Record<TransportName, number>> = {
  udp: 1,
  tcp: 2,
  tls: 3,
  https: 4,
  https3: 4,
  grpc: 2,
  quic: 7,
};

/** Protocol names of exchanges with upstreams. */
const EXCHANGES: ReadonlyMap<string, number> = new Map([
  ...Object.entries(PROTOCOLS),
  ["tcp-tls", PROTOCOLS.tls],
]);

export function protocolNumber(protocol: string): number {
  return EXCHANGES.get(protocol) ?? PROTOCOLS.tcp;
}

export function transportNumber(transport: TransportName): number {
  return PROTOCOLS[transport];
}

export interface TapFacts {
  readonly type: number;
  readonly protocol: number;
  readonly client: Endpoint | undefined;
  /** 4 or 16 octets of the upstream's address, and its port. */
  readonly server: { readonly octets: Uint8Array; readonly port: number } | undefined;
  /** Milliseconds of the Unix epoch. */
  readonly queryTime: number;
  readonly responseTime: number | undefined;
  readonly query: Uint8Array | undefined;
  readonly response: Uint8Array | undefined;
}

/** Writes `Dnstap` messages of one sender into a reused buffer. */
export class TapWriter {
  readonly octets: Uint8Array = new Uint8Array(2 * 0x10000 + 8192);
  readonly #body = new Uint8Array(2 * 0x10000 + 1024);
  readonly #identity: Uint8Array;
  readonly #version: Uint8Array;
  #out: Uint8Array = this.#body;
  #at = 0;

  constructor(identity: string, version: string) {
    this.#identity = Buffer.from(identity).subarray(0, 1024);
    this.#version = Buffer.from(version).subarray(0, 1024);
  }

  /** @returns length of the message, which begins at the start of {@link octets} */
  write(facts: TapFacts, extra: string): number {
    this.#out = this.#body;
    this.#at = 0;
    this.#message(facts);
    const length = this.#at;
    this.#out = this.octets;
    this.#at = 0;
    if (this.#identity.length > 0) this.#bytes(1, this.#identity);
    if (this.#version.length > 0) this.#bytes(2, this.#version);
    if (extra !== "") this.#bytes(3, Buffer.from(extra).subarray(0, 4096));
    this.#bytes(14, this.#body.subarray(0, length));
    this.#number(15, 1);
    return this.#at;
  }

  #message({ type, protocol, client, server, queryTime, responseTime, query, response }: TapFacts): void {
    this.#number(1, type);
    const address = client?.octets ?? server?.octets;
    if (address !== undefined) this.#number(2, address.length === 4 ? 1 : 2);
    this.#number(3, protocol);
    if (client !== undefined) this.#bytes(4, client.octets);
    if (server !== undefined) this.#bytes(5, server.octets);
    if (client !== undefined) this.#number(6, client.port);
    if (server !== undefined) this.#number(7, server.port);
    this.#time(8, 9, queryTime);
    if (query !== undefined) this.#bytes(10, query);
    if (responseTime !== undefined) this.#time(12, 13, responseTime);
    if (response !== undefined) this.#bytes(14, response);
  }

  #time(seconds: number, nanoseconds: number, time: number): void {
    const whole = Math.floor(time / 1000);
    this.#number(seconds, whole);
    this.#varint((nanoseconds << 3) | 5);
    const rest = Math.min(999_999_999, Math.round((time - whole * 1000) * 1e6));
    for (let shift = 0; shift < 32; shift += 8) this.#out[this.#at++] = rest >>> shift;
  }

  #number(field: number, value: number): void {
    this.#varint(field << 3);
    this.#varint(value);
  }

  #bytes(field: number, octets: Uint8Array): void {
    this.#varint((field << 3) | 2);
    this.#varint(octets.length);
    this.#out.set(octets, this.#at);
    this.#at += octets.length;
  }

  #varint(value: number): void {
    let rest = value;
    while (rest >= 0x80) {
      this.#out[this.#at++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#out[this.#at++] = rest;
  }
}

/**
 * Sets the id of a reply. Queries to upstreams are logged with the client's id, so their replies are, too, and
 * readers can pair them. The bytes may be a `Buffer`, whose `slice` copies nothing.
 */
export function withId(reply: Uint8Array, id: number): Uint8Array {
  const copy = copyOctets(reply, 0, reply.length);
  writeU16(copy, 0, id);
  return copy;
}
