/** What a proxy says in front of a client's messages, such as the PROXY protocol's header, so that the client's address is not lost. */
import type { Endpoint } from "../message/endpoint.ts";

/** Reads greetings. A plugin sets one for its block (`BlockSettings.greeting`); it stands below every transport of the listener. */
export interface Greeting {
  /**
   * Reads the beginning of a stream.
   * @param octets all that has come so far
   * @returns `undefined` where more has to come
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
  /** Octets of the greeting; the messages begin behind it. 0 where there is none. */
  readonly length: number;
  /** Who asks in truth; the peer unless given. */
  readonly client?: Endpoint | undefined;
  /** Where it asked; where the peer did unless given. */
  readonly local?: Endpoint | undefined;
}

/** A greeting that is malformed, missing, or comes from who may not send one. */
export class GreetingError extends Error {
  override readonly name = "GreetingError";
}
