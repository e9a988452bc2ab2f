/**
 * The header that a proxy puts in front of a client's messages to pass on the client's address, such as that of the
 * PROXY protocol.
 */
import type { Endpoint } from "../message/endpoint.ts";

/**
 * Reads such headers. A plugin sets one for its block (`BlockSettings.greeting`); it applies below every transport of
 * the listener.
 */
export interface Greeting {
  /**
   * Reads the beginning of a stream.
   * @param octets everything received so far
   * @returns `undefined` if the header is incomplete
   * @throws GreetingError: the connection is closed
   */
  readStream(octets: Uint8Array, peer: Endpoint, local: Endpoint): GreetingReading | undefined;
  /**
   * Reads the beginning of a datagram.
   * @throws GreetingError: the datagram is skipped
   */
  readDatagram(octets: Uint8Array, peer: Endpoint, local: Endpoint): GreetingReading;
}

export interface GreetingReading {
  /** Octets of the header; the messages begin behind it. 0 without a header. */
  readonly length: number;
  /** The client behind the proxy; the peer unless given. */
  readonly client?: Endpoint | undefined;
  /** The address that the client queried; the socket's own unless given. */
  readonly local?: Endpoint | undefined;
}

/** A header that is malformed, missing, or from a peer that may not send one. */
export class GreetingError extends Error {
  override readonly name = "GreetingError";
}
