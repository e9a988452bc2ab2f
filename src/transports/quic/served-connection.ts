/** The server side of a QUIC connection: the part common to all protocols. */
import type { ListPlace } from "../../lib/collections/linked-list.ts";
import type {
  QuicClosed,
  QuicConnection,
  QuicConnectionUser,
  QuicStream,
  QuicStreamUser,
} from "../../quic/quic.ts";
import type { BudgetedConnection } from "../connection-budget.ts";

/** Codes with which a protocol closes connections and resets streams. */
export interface CloseCodes {
  readonly none: number;
  readonly internal: number;
  readonly excessiveLoad: number;
}

/** Memory of a connection, with OpenSSL's state and the buffers of its packets. */
export const QUIC_OCTETS = 96 * 1024;

/** The listener, as its connections see it. */
export interface ConnectionHome {
  /** Milliseconds on a monotonic clock. */
  now(): number;
  /** Passes a request on. Its answer goes to {@link ServedConnection.stream}. */
  request(connection: ServedConnection, stream: number, payload: Uint8Array): void;
  /** A request that was passed on has ended. */
  settled(): void;
  /** A peer broke the protocol. */
  violated(): void;
  /** @returns false if incomplete requests hold too many octets together */
  hold(octets: number): boolean;
  letGo(octets: number): void;
  connected(connection: ServedConnection): void;
  heardFrom(connection: ServedConnection): void;
  closed(connection: ServedConnection, reason: QuicClosed): void;
}

/** A request on its stream. */
export interface ServedStream extends QuicStreamUser {
  readonly stream: QuicStream;
  /** When it began. */
  readonly since: number;
  /** Whether it was passed on. */
  readonly isAsked: boolean;
  /** The request is answered or abandoned: its memory is released. */
  end(): void;
}

export abstract class ServedConnection implements QuicConnectionUser, BudgetedConnection {
  budgetPlace: ListPlace<BudgetedConnection> | undefined;
  readonly octets = QUIC_OCTETS;
  readonly number: number;
  readonly connection: QuicConnection;
  readonly since: number;
  lastHeard: number;
  abstract readonly codes: CloseCodes;
  protected readonly home: ConnectionHome;
  readonly #requests = new Map<number, ServedStream>();
  #asked = 0;
  #isEnding = false;

  constructor(number: number, connection: QuicConnection, home: ConnectionHome) {
    this.number = number;
    this.connection = connection;
    this.home = home;
    this.since = home.now();
    this.lastHeard = this.since;
  }

  get awaitsAnswers(): boolean {
    return this.#asked > 0;
  }

  /** Closes it to make room for another connection. */
  destroy(): void {
    this.connection.close(this.codes.excessiveLoad, "too many connections");
  }

  /** Closes it because it is the connection with the most unread answers. */
  giveUp(): void {
    this.connection.close(this.codes.excessiveLoad, "too many unread answers");
  }

  connected(): void {
    this.home.connected(this);
  }

  accepted(stream: QuicStream): QuicStreamUser {
    this.lastHeard = this.home.now();
    this.home.heardFrom(this);
    if (stream.isUnidirectional) return this.listen(stream);
    const request = this.begin(stream);
    this.#requests.set(requestNumber(stream), request);
    return request;
  }

  closed(reason: QuicClosed): void {
    for (const request of this.#requests.values()) {
      if (request.isAsked) this.home.settled();
      request.end();
    }
    this.#requests.clear();
    this.#asked = 0;
    this.home.closed(this, reason);
  }

  /** A request is whole. */
  ask(request: ServedStream, payload: Uint8Array): void {
    this.#asked++;
    this.home.request(this, requestNumber(request.stream), payload);
  }

  /** The stream of a request that was passed on; `undefined` if its client has reset it. Ends the request. */
  settle(stream: number): QuicStream | undefined {
    const request = this.#requests.get(stream);
    if (request === undefined) return undefined;
    this.forget(request);
    return request.stream;
  }

  forget(request: ServedStream): void {
    if (!this.#requests.delete(requestNumber(request.stream))) return;
    if (request.isAsked) {
      this.#asked--;
      this.home.settled();
    }
    request.end();
    this.lastHeard = this.home.now();
    if (this.#isEnding && this.#requests.size === 0) this.connection.finish(this.codes.none);
  }

  /** The peer broke the protocol: its connection ends, and others continue. */
  violate(code: number, reason: string): void {
    if (!this.connection.isOpen) return;
    this.home.violated();
    this.connection.close(code, reason);
  }

  /** Ends requests and connections that took too long. */
  sweep(now: number, readTimeout: number, idleTimeout: number): void {
    for (const request of [...this.#requests.values()]) {
      if (request.isAsked || now - request.since < readTimeout) continue;
      request.stream.reset(this.codes.excessiveLoad);
      this.forget(request);
    }
    if (this.#requests.size === 0 && now - this.lastHeard >= idleTimeout)
      this.connection.finish(this.codes.none);
  }

  /** Accepts no further requests, and closes when the accepted ones are answered. */
  endWhenAnswered(): void {
    this.#isEnding = true;
    this.sayGoodbye();
    for (const request of [...this.#requests.values()]) {
      if (!request.isAsked) this.forget(request);
    }
  }

  /** Announces the end of the connection, if the protocol has a frame for it. */
  protected sayGoodbye(): void {
    // Most have none.
  }

  /** Reads a unidirectional stream of the peer. */
  protected abstract listen(stream: QuicStream): QuicStreamUser;
  protected abstract begin(stream: QuicStream): ServedStream;
}

/** Requests are numbered by their streams: every fourth stream is bidirectional and the client's (RFC 9000 section 2.1). */
function requestNumber({ id }: QuicStream): number {
  return Math.floor(id / 4) % 2 ** 32;
}
